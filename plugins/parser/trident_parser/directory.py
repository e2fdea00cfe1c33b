"""What parsers of ITCH 5.0 tell the session's directory: its rules for symbols, once for all engines."""

from __future__ import annotations

from struct import Struct
from typing import Final

from trident_core.session import Instrument, Session
from trident_core.stats import Anomalies
from trident_parser.itch50 import BY_LETTER, STOCK_OFFSETS

#: What the directory keeps of R: every field after the stock, by the specification's name.
_DETAIL_NAMES: Final = tuple(field.name for field in BY_LETTER["R"].fields[5:])
_DETAILS: Final = Struct(">21xccIcc2scccccIc").unpack_from
_STOCK_OFFSETS: Final = tuple(map(int, STOCK_OFFSETS))


def teach(session: Session, anomalies: Anomalies, data: memoryview, at: int, position: int) -> bytes:
    """Tell the directory the symbol of the framed message that starts at data[at], source offset `position`.

    R wins over what the directory has; other messages only fill what it lacks. A symbol that disagrees is
    counted as `symbol_mismatch`. Returns the stock field if feed and directory agree on it now, else b"".
    """
    letter = data[at + 2]
    locate = data[at + 3] << 8 | data[at + 4]
    start = at + 2 + _STOCK_OFFSETS[letter]
    stock = bytes(data[start : start + 8])
    symbol = stock.rstrip(b" \0").decode("latin-1")
    if locate == 0 or not symbol:
        return b""
    known = session.directory.symbol(locate)
    if known and known != symbol:
        anomalies.add("symbol_mismatch", at=position)
    if letter == ord("R"):
        session.directory.put(Instrument(locate, symbol, _details(data, at)))
    elif not known:
        session.directory.put(Instrument(locate, symbol))
    elif known != symbol:
        return b""
    return stock


def _details(data: memoryview, at: int) -> dict[str, str | int]:
    """What R says of its instrument: numbers, letters as they are, texts without their padding."""
    return {
        name: value if isinstance(value, int) else _text(value)
        for name, value in zip(_DETAIL_NAMES, _DETAILS(data, at), strict=True)
    }


def _text(value: bytes) -> str:
    return (value if len(value) == 1 else value.rstrip(b" \0")).decode("latin-1")
