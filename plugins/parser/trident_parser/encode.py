"""The encoder: EVENTs and typed rows back to framed ITCH 5.0 messages, vectorised.

parse(encode(x)) == x for events and rows; encode_rows(parse_tables(b)) == b, byte for byte. The sequence
number is the transport's, not the message's: `seq` is not encoded, and a parser counts it anew.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, EventFlag, Events, Frames
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_parser.itch50 import (
    BY_LETTER,
    LENGTHS,
    LETTER,
    MESSAGES,
    STOCK_OFFSETS,
    TABLE_DTYPES,
    TEXT,
    WIRE_DTYPES,
    Field,
    Message,
    framed_at,
)

#: Where each field of a message stands in an EVENT: the name of a column, or the first of its bytes in `aux`
#: (numbers in `aux` are little-endian). Fields not named have no place in EVENT. docs/contracts/parser.md.
EVENT_PLACES: Final[dict[str, dict[str, str | int]]] = {
    "S": {"event_code": 0},
    "R": {
        "round_lot_size": "qty",
        "market_category": 0,
        "financial_status_indicator": 1,
        "issue_classification": 2,
        "issue_sub_type": 3,
        "authenticity": 5,
        "etp_flag": 6,
        "ipo_flag": 7,
    },
    "H": {"trading_state": 0, "reason_code": 1},
    "Y": {"reg_sho_action": 0},
    "L": {"mpid": 0, "primary_market_maker": 4, "market_maker_mode": 5, "market_participant_state": 6},
    "V": {"level_1": "price"},
    "W": {"breached_level": 0},
    "K": {"ipo_price": "price", "ipo_quotation_release_time": "qty", "ipo_quotation_release_qualifier": 0},
    "J": {
        "auction_collar_reference_price": "price",
        "auction_collar_extension": "qty",
        "upper_auction_collar_price": 0,
        "lower_auction_collar_price": 4,
    },
    "h": {"market_code": 0, "operational_halt_action": 1},
    "A": {"order_reference_number": "ref", "buy_sell_indicator": "side", "shares": "qty", "price": "price"},
    "F": {
        "order_reference_number": "ref",
        "buy_sell_indicator": "side",
        "shares": "qty",
        "price": "price",
        "attribution": 0,
    },
    "E": {"order_reference_number": "ref", "match_number": "ref2", "executed_shares": "qty"},
    "C": {
        "order_reference_number": "ref",
        "match_number": "ref2",
        "executed_shares": "qty",
        "execution_price": "price",
        "printable": "flags",
    },
    "X": {"order_reference_number": "ref", "canceled_shares": "qty"},
    "D": {"order_reference_number": "ref"},
    "U": {
        "original_order_reference_number": "ref",
        "new_order_reference_number": "ref2",
        "shares": "qty",
        "price": "price",
    },
    "P": {
        "order_reference_number": "ref",
        "match_number": "ref2",
        "buy_sell_indicator": "side",
        "shares": "qty",
        "price": "price",
    },
    "Q": {"match_number": "ref2", "cross_shares": "qty", "cross_price": "price", "cross_type": 0},
    "B": {"match_number": "ref2"},
    "I": {
        "imbalance_shares": "ref2",
        "paired_shares": "qty",
        "current_reference_price": "price",
        "imbalance_direction": "side",
        "cross_type": 0,
        "price_variation_indicator": 1,
        "near_price": 4,
    },
    "N": {"interest_flag": 0},
    "O": {"near_execution_price": "price", "open_eligibility_status": 0, "minimum_allowable_price": 4},
}

_COLUMNS: Final = ("ref", "ref2", "price", "qty", "side")
_FLAGS_ALWAYS: Final = {"V": int(EventFlag.PRICE_8DP)}
_FLAGS_MAYBE: Final = {"C": int(EventFlag.NON_PRINTABLE)}

#: Events encoded at a time: the temporaries stay in the cache, whatever the size of the batch.
_BLOCK: Final = 1 << 15


def encode_events(events: Events, session: Session) -> Frames:
    """EVENT[n] -> u8[total], framed with 2-byte lengths, in order.

    Symbols come from `session.directory` by locate; locate 0 is no stock and gives a blank symbol. Fields
    that EVENT does not have are zero (numbers) or spaces (texts and letters). `seq` is not encoded.

    Raises UsageError, naming the index and the column, for what the wire cannot hold: a type that ITCH 5.0
    does not have, a number beyond its field, a column or a byte of `aux` that the type does not use and that
    is not 0, a symbol that the directory lacks (for a type that carries one) or that is not 1 to 8 Latin-1
    characters.
    """
    if events.dtype != EVENT or events.ndim != 1:
        raise UsageError(f"encode_events needs EVENT[n], not {events.dtype}[{events.shape}]")
    types = np.ascontiguousarray(events["type"])
    lengths = LENGTHS[types]
    if not lengths.all():
        bad = int(np.argmin(lengths))
        raise UsageError(f"event {bad}: column 'type' is {int(types[bad])}, which ITCH 5.0 does not have")
    ends = np.cumsum(lengths.astype(np.int64) + 2)
    starts = ends - lengths - 2
    out = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
    symbols = _symbol_column(events, types, session)
    opaque = events.view(f"V{EVENT.itemsize}")  # numpy gathers whole records, not field by field
    for base in range(0, len(events), _BLOCK):
        block = slice(base, base + _BLOCK)
        present = np.flatnonzero(np.bincount(types[block], minlength=256))
        for letter in map(chr, present):
            index: NDArray[np.int64] = np.flatnonzero(types[block] == ord(letter)) + base
            same_type = opaque[index].view(EVENT)
            wire = _EventEncoder(BY_LETTER[letter], same_type, index).encode(symbols)
            framed_at(out, letter)[starts[index]] = wire.view(f"V{wire.itemsize}")
    return out


def encode_rows(type_letter: str, rows: NDArray[Any]) -> Frames:
    """Rows of one type, `TABLE_DTYPES[type_letter]`[n] -> framed messages, in order, byte for byte.

    `seq` is not encoded. Texts are written as they stand; numpy fills a shorter text up with NULs, so use
    `pad_texts` on rows of your own. Raises UsageError for an unknown type, for another dtype, and for a
    timestamp of 2**48 or more.
    """
    if type_letter not in BY_LETTER:
        raise UsageError(f"ITCH 5.0 has no type {type_letter!r}", hint=f"types: {''.join(BY_LETTER)}")
    dtype = TABLE_DTYPES[type_letter]
    if rows.dtype != dtype or rows.ndim != 1:
        raise UsageError(f"rows of {type_letter} need the dtype {dtype}, not {rows.dtype}[{rows.shape}]")
    message = BY_LETTER[type_letter]
    wire = _blank(message, len(rows))
    for field in message.fields[1:]:
        if field.size == 6:
            _check(
                rows[field.name] >> 48 != 0,
                np.arange(len(rows)),
                field.name,
                "needs more than 48 bits",
                "row",
            )
            _put_timestamp(wire, rows[field.name])
        else:
            wire[field.name] = rows[field.name]
    return wire.view(np.uint8)


def pad_texts(type_letter: str, rows: NDArray[Any]) -> NDArray[Any]:
    """Fill texts and letters of typed rows up with spaces, in place, as the wire does; return `rows`.

    For rows made by hand: numpy fills b"AAPL" up with NULs. Only trailing NULs are replaced.
    """
    for field in BY_LETTER[type_letter].fields[1:]:
        if field.kind in (LETTER, TEXT):
            rows[field.name] = np.char.ljust(rows[field.name], field.size)
    return rows


class _EventEncoder:
    """The events of one type, all of them at once. `index` holds their places in the caller's array."""

    def __init__(self, message: Message, events: Events, index: NDArray[np.int64]) -> None:
        self.message = message
        self.events = events
        self.index = index
        self.places = EVENT_PLACES[message.letter]

    def encode(self, symbols: NDArray[Any]) -> NDArray[Any]:
        self._check_unused()
        message, events = self.message, self.events
        wire = _blank(message, len(events))
        octets = wire.view(np.uint8).reshape(len(events), -1)
        self._refuse(events["locate"] > 0xFFFF, "locate", "needs more than 16 bits")
        self._refuse(events["ts"] >> 48 != 0, "ts", "needs more than 48 bits")
        wire["stock_locate"] = events["locate"]
        _put_timestamp(wire, events["ts"])
        for field in message.fields[4:]:
            place = self.places.get(field.name)
            if field.name == "stock":
                wire["stock"] = symbols[events["locate"]]
            elif isinstance(place, int):
                self._put_aux(field, place, octets)
            elif place == "flags":
                printable = events["flags"] & EventFlag.NON_PRINTABLE == 0
                wire[field.name] = np.where(printable, b"Y", b"N")
            elif place == "side":
                wire[field.name].view(np.uint8)[:] = events["side"]
            elif place is not None:
                self._put_number(field, place, wire)
        return wire

    def _put_number(self, field: Field, column: str, wire: NDArray[Any]) -> None:
        # A negative price is beyond any 4-byte field; the 8 bytes of V's level 1 hold every i64 bit for bit.
        values = self.events[column].view(np.uint64)
        if field.size == 4:
            self._refuse(values >> 32 != 0, column, "is outside its 4 bytes")
        wire[field.name] = values

    def _put_aux(self, field: Field, at: int, octets: NDArray[np.uint8]) -> None:
        source = self.events["aux"][:, at : at + field.size]
        if field.kind not in (LETTER, TEXT):
            source = source[:, ::-1]  # little-endian in aux, big-endian on the wire
        start = 2 + field.offset
        for k in range(field.size):  # by columns: rows of a few bytes are slow to copy one by one
            octets[:, start + k] = source[:, k]

    def _check_unused(self) -> None:
        """Refuse what this type's message has no room for, rather than lose it."""
        letter, events = self.message.letter, self.events
        used = set(self.places.values())
        for column in _COLUMNS:
            if column not in used:
                self._refuse(events[column] != 0, column, f"must be 0 for type {letter}")
        always, maybe = _FLAGS_ALWAYS.get(letter, 0), _FLAGS_MAYBE.get(letter, 0)
        self._refuse(
            events["flags"] & ~np.uint16(maybe) != always, "flags", f"is not one that {letter} can have"
        )
        spare = events["aux"].copy().view("<u8")[:, 0] & np.uint64(_SPARE_AUX[letter])
        self._refuse(spare != 0, "aux", f"has bytes that type {letter} does not use")

    def _refuse(self, bad: NDArray[np.bool_], column: str, why: str) -> None:
        _check(bad, self.index, column, why, "event")


def _check(bad: NDArray[np.bool_], index: NDArray[np.int64], column: str, why: str, what: str) -> None:
    """Raise for the first that is bad, if any is."""
    if bad.any():
        raise UsageError(f"{what} {int(index[np.argmax(bad)])}: column {column!r} {why}")


def _blank(message: Message, n: int) -> NDArray[Any]:
    """n framed messages of one type: zero numbers, blank texts."""
    template = np.zeros(1, WIRE_DTYPES[message.letter])
    template["length"] = message.length
    for field in message.fields:
        if field.kind in (LETTER, TEXT):
            template[field.name] = b" " * field.size
    template["message_type"] = message.letter.encode("ascii")
    return np.repeat(template, n)


def _put_timestamp(wire: NDArray[Any], ts: NDArray[Any]) -> None:
    wire["timestamp_high"] = ts >> 32
    wire["timestamp_low"] = ts & 0xFFFFFFFF


def _symbol_column(events: Events, types: NDArray[np.uint8], session: Session) -> NDArray[Any]:
    """S8[65536]: the padded symbol of each locate that some event needs; blank elsewhere."""
    symbols = np.full(0x10000, b" " * 8, "S8")
    index = np.flatnonzero(STOCK_OFFSETS[types])
    locates = events["locate"][index]
    _check(locates > 0xFFFF, index, "locate", "needs more than 16 bits", "event")
    needed = np.zeros(0x10000, np.bool_)
    needed[locates] = True
    needed[0] = False
    for locate in map(int, np.flatnonzero(needed)):
        try:
            octets = session.directory.symbol(locate).encode("latin-1")
        except UnicodeEncodeError:
            octets = b""
        if not 1 <= len(octets) <= 8:
            first = int(index[np.argmax(locates == locate)])
            symbol = session.directory.symbol(locate)
            raise UsageError(
                f"event {first}: column 'locate' is {locate}, whose symbol is {symbol!r}",
                hint="put it into session.directory: 1 to 8 Latin-1 characters",
            )
        symbols[locate] = octets.ljust(8)
    return symbols


def _spare_aux(message: Message) -> int:
    """The bits of `aux`, read as a little-endian u64, that the type does not use."""
    mask = (1 << 64) - 1
    for field in message.fields:
        place = EVENT_PLACES[message.letter].get(field.name)
        if isinstance(place, int):
            mask &= ~(((1 << 8 * field.size) - 1) << 8 * place)
    return mask


_SPARE_AUX: Final = {message.letter: _spare_aux(message) for message in MESSAGES}

__all__ = ["EVENT_PLACES", "encode_events", "encode_rows", "pad_texts"]
