"""The appendage: a list of TagValues behind a 2-byte length (OUCH 5.0, section 1.2 and appendix A).

A TagValue is a byte of length (of tag and value), a byte of tag, the value. In Python an appendage is a
tuple of (tag, value) in the order of the wire; the value is an int, a str or, for tags that the
specification does not have, bytes. Tags that are not known are kept, so that decode and encode are each
other's inverse; what a server does about them is its own affair.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

from trident_exchange.ouch.errors import OuchError

Value = int | str | bytes
Options = tuple[tuple[int, Value], ...]

#: An appendage is at most this long here: every known tag once, and room. The wire would allow 65,535.
APPENDAGE_MAX: Final = 512


class Tag(IntEnum):
    """OptionTag, appendix A."""

    SECONDARY_ORD_REF_NUM = 1
    FIRM = 2
    MIN_QTY = 3
    CUSTOMER_TYPE = 4
    MAX_FLOOR = 5
    PRICE_TYPE = 6
    PEG_OFFSET = 7
    DISCRETION_PRICE = 9
    DISCRETION_PRICE_TYPE = 10
    DISCRETION_PEG_OFFSET = 11
    POST_ONLY = 12
    RANDOM_RESERVES = 13
    ROUTE = 14
    EXPIRE_TIME = 15
    TRADE_NOW = 16
    HANDLE_INST = 17
    BBO_WEIGHT_INDICATOR = 18
    DISPLAY_QUANTITY = 22
    DISPLAY_PRICE = 23
    GROUP_ID = 24
    SHARES_LOCATED = 25
    LOCATE_BROKER = 26
    SIDE = 27
    USER_REF_IDX = 28
    AIQ_STRATEGY = 29
    AIQ_GROUP_ID = 30


#: tag -> struct format of its value: B H I Q unsigned, i signed, "Ns" text.
FORMATS: Final[dict[int, str]] = {
    Tag.SECONDARY_ORD_REF_NUM: "Q", Tag.FIRM: "4s", Tag.MIN_QTY: "I", Tag.CUSTOMER_TYPE: "1s",
    Tag.MAX_FLOOR: "I",
    Tag.PRICE_TYPE: "1s", Tag.PEG_OFFSET: "i", Tag.DISCRETION_PRICE: "Q", Tag.DISCRETION_PRICE_TYPE: "1s",
    Tag.DISCRETION_PEG_OFFSET: "i", Tag.POST_ONLY: "1s", Tag.RANDOM_RESERVES: "I", Tag.ROUTE: "4s",
    Tag.EXPIRE_TIME: "I", Tag.TRADE_NOW: "1s", Tag.HANDLE_INST: "1s", Tag.BBO_WEIGHT_INDICATOR: "1s",
    Tag.DISPLAY_QUANTITY: "I", Tag.DISPLAY_PRICE: "Q", Tag.GROUP_ID: "H", Tag.SHARES_LOCATED: "1s",
    Tag.LOCATE_BROKER: "4s", Tag.SIDE: "1s", Tag.USER_REF_IDX: "B", Tag.AIQ_STRATEGY: "1s",
    Tag.AIQ_GROUP_ID: "2s",
}  # fmt: skip
_STRUCTS: Final = {tag: struct.Struct(">" + form) for tag, form in FORMATS.items()}


def option(options: Options | None, tag: int) -> Value | None:
    """The value of the first option with `tag`; None if there is none."""
    for each, value in options or ():
        if each == tag:
            return value
    return None


def decode_options(data: bytes, start: int) -> Options | None:
    """The appendage at data[start:], which it must fill; None when nothing is there. Raises OuchError."""
    if start == len(data):
        return None
    if len(data) < start + 2:
        raise OuchError("the length of the appendage is cut", offset=start, hint="it has 2 bytes, big-endian")
    length = data[start] << 8 | data[start + 1]
    at, end = start + 2, start + 2 + length
    if end != len(data):
        raise OuchError(
            f"the appendage says {length} bytes and {len(data) - at} follow", offset=start,
            hint="its length counts the TagValues, not itself, and they end the message",
        )  # fmt: skip
    if length > APPENDAGE_MAX:
        raise OuchError(f"an appendage of {length} bytes", offset=start, hint=f"at most {APPENDAGE_MAX}")
    found: list[tuple[int, Value]] = []
    seen = 0
    while at < end:
        size = data[at]
        if size < 1 or at + 1 + size > end:
            raise OuchError(
                f"a TagValue of {size} bytes with {end - at - 1} left", offset=at, hint="tag + value"
            )
        tag = data[at + 1]
        if seen >> tag & 1:
            raise OuchError(f"option {tag} stands there twice", offset=at, hint="send each option once")
        seen |= 1 << tag
        found.append((tag, _decode_value(tag, data[at + 2 : at + 1 + size], at)))
        at += 1 + size
    return tuple(found)


def _decode_value(tag: int, raw: bytes, at: int) -> Value:
    packer = _STRUCTS.get(tag)
    if packer is None:
        return raw
    if len(raw) != packer.size:
        raise OuchError(
            f"option {tag} ({Tag(tag).name}) with a value of {len(raw)} bytes", offset=at,
            hint=f"it has {packer.size}",
        )  # fmt: skip
    (value,) = packer.unpack(raw)
    if isinstance(value, bytes):
        text = value.decode("latin-1")
        if not (text.isascii() and text.isprintable()):
            raise OuchError(f"option {tag} ({Tag(tag).name}) is {value!r}", offset=at, hint="printable ASCII")
        return text.rstrip(" ")
    number: int = value
    return number


def encode_options(options: Options | None) -> bytes:
    """The inverse. Raises OuchError (offset 0) for what the wire cannot hold."""
    if options is None:
        return b""
    if not options:
        return b"\0\0"
    parts = []
    for tag, value in options:
        raw = _encode_value(tag, value)
        parts.append(bytes((1 + len(raw), tag)) + raw)
    body = b"".join(parts)
    if len(body) > APPENDAGE_MAX:
        raise OuchError(f"an appendage of {len(body)} bytes", offset=0, hint=f"at most {APPENDAGE_MAX}")
    if len({tag for tag, _ in options}) < len(options):
        raise OuchError("an option stands there twice", offset=0, hint="send each option once")
    return len(body).to_bytes(2, "big") + body


def _fits(text: str, width: int) -> bool:
    return len(text) <= width and text.isprintable() and not text.endswith(" ")


def _encode_value(tag: int, value: Value) -> bytes:
    packer = _STRUCTS.get(tag)
    if packer is None:
        if isinstance(value, bytes) and len(value) <= 254 and 0 <= tag <= 255:
            return value
        raise OuchError(f"option {tag} is {value!r}", offset=0, hint="an unknown tag has up to 254 bytes")
    text = FORMATS[tag].endswith("s")
    try:
        if text and isinstance(value, str) and _fits(value, packer.size):
            return value.encode("ascii").ljust(packer.size)
        if not text and isinstance(value, int) and not isinstance(value, bool):
            return packer.pack(value)
    except (struct.error, UnicodeEncodeError):
        pass
    hint = (
        f"text of up to {packer.size} ASCII characters" if text else f"a whole number of {packer.size} bytes"
    )
    raise OuchError(f"option {tag} ({Tag(tag).name}) is {value!r}", offset=0, hint=hint)
