"""NASDAQ TotalView-ITCH 5.0 as data: the one table from which lengths, dtypes and the encoder are derived.

Every message starts with the same four fields (type, locate, tracking number, timestamp; 11 bytes).
Integers are big-endian; prices have 4 implied decimals, the three of V have 8 (spec section 3); texts are
left-justified and padded with spaces; a timestamp is nanoseconds since midnight in 6 bytes (8 in O's body).

Source: Nasdaq TotalView-ITCH 5.0 specification, section 4; O by its later revisions.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray


class FieldKind(StrEnum):
    """What the bytes of a field are."""

    INTEGER = "integer"
    PRICE4 = "price4"  # u32, 4 decimals
    PRICE8 = "price8"  # u64, 8 decimals
    LETTER = "letter"  # one byte
    TEXT = "text"  # left-justified, padded with spaces
    TIMESTAMP = "timestamp"  # nanoseconds since midnight


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message: `size` bytes at `offset`, counted from the type byte."""

    name: str
    offset: int
    size: int
    kind: FieldKind


@dataclass(frozen=True, slots=True)
class Message:
    """One message type: its letter, the specification's name, its length in bytes, its fields in order."""

    letter: str
    name: str
    length: int
    fields: tuple[Field, ...]

    @property
    def type(self) -> int:
        """The type byte."""
        return ord(self.letter)


INTEGER, PRICE4, PRICE8 = FieldKind.INTEGER, FieldKind.PRICE4, FieldKind.PRICE8
LETTER, TEXT, TIMESTAMP = FieldKind.LETTER, FieldKind.TEXT, FieldKind.TIMESTAMP

_Row = tuple[str, int, FieldKind]

_HEADER: Final[tuple[_Row, ...]] = (
    ("message_type", 1, LETTER),
    ("stock_locate", 2, INTEGER),
    ("tracking_number", 2, INTEGER),
    ("timestamp", 6, TIMESTAMP),
)

_STOCK: Final[_Row] = ("stock", 8, TEXT)
_REFERENCE: Final[_Row] = ("order_reference_number", 8, INTEGER)
_MATCH: Final[_Row] = ("match_number", 8, INTEGER)
_ADD: Final[tuple[_Row, ...]] = (
    _REFERENCE,
    ("buy_sell_indicator", 1, LETTER),
    ("shares", 4, INTEGER),
    _STOCK,
    ("price", 4, PRICE4),
)


def _message(letter: str, length: int, name: str, *body: _Row) -> Message:
    """Lay the fields out one after the other; a sum that is not `length` fails at import."""
    fields = []
    offset = 0
    for field_name, size, kind in (*_HEADER, *body):
        fields.append(Field(field_name, offset, size, kind))
        offset += size
    if offset != length:
        raise ImportError(f"the fields of {letter} have {offset} bytes instead of {length}")
    return Message(letter, name, length, tuple(fields))


#: The 23 message types, in the order of the specification.
MESSAGES: Final[tuple[Message, ...]] = (
    _message("S", 12, "system_event", ("event_code", 1, LETTER)),
    _message(
        "R", 39, "stock_directory",
        _STOCK,
        ("market_category", 1, LETTER),
        ("financial_status_indicator", 1, LETTER),
        ("round_lot_size", 4, INTEGER),
        ("round_lots_only", 1, LETTER),
        ("issue_classification", 1, LETTER),
        ("issue_sub_type", 2, TEXT),
        ("authenticity", 1, LETTER),
        ("short_sale_threshold_indicator", 1, LETTER),
        ("ipo_flag", 1, LETTER),
        ("luld_reference_price_tier", 1, LETTER),
        ("etp_flag", 1, LETTER),
        ("etp_leverage_factor", 4, INTEGER),
        ("inverse_indicator", 1, LETTER),
    ),
    _message(
        "H", 25, "stock_trading_action",
        _STOCK,
        ("trading_state", 1, LETTER),
        ("reserved", 1, LETTER),
        ("reason_code", 4, TEXT),
    ),
    _message(
        "Y", 20, "reg_sho_short_sale_price_test_restricted_indicator",
        _STOCK,
        ("reg_sho_action", 1, LETTER),
    ),
    _message(
        "L", 26, "market_participant_position",
        ("mpid", 4, TEXT),
        _STOCK,
        ("primary_market_maker", 1, LETTER),
        ("market_maker_mode", 1, LETTER),
        ("market_participant_state", 1, LETTER),
    ),
    _message(
        "V", 35, "mwcb_decline_level",
        ("level_1", 8, PRICE8),
        ("level_2", 8, PRICE8),
        ("level_3", 8, PRICE8),
    ),
    _message("W", 12, "mwcb_status_level", ("breached_level", 1, LETTER)),
    _message(
        "K", 28, "ipo_quoting_period_update",
        _STOCK,
        ("ipo_quotation_release_time", 4, INTEGER),  # seconds since midnight; 0 cancels
        ("ipo_quotation_release_qualifier", 1, LETTER),
        ("ipo_price", 4, PRICE4),
    ),
    _message(
        "J", 35, "luld_auction_collar",
        _STOCK,
        ("auction_collar_reference_price", 4, PRICE4),
        ("upper_auction_collar_price", 4, PRICE4),
        ("lower_auction_collar_price", 4, PRICE4),
        ("auction_collar_extension", 4, INTEGER),  # a count of extensions
    ),
    _message(
        "h", 21, "operational_halt",
        _STOCK,
        ("market_code", 1, LETTER),
        ("operational_halt_action", 1, LETTER),
    ),
    _message("A", 36, "add_order_no_mpid_attribution", *_ADD),
    _message("F", 40, "add_order_with_mpid_attribution", *_ADD, ("attribution", 4, TEXT)),
    _message("E", 31, "order_executed", _REFERENCE, ("executed_shares", 4, INTEGER), _MATCH),
    _message(
        "C", 36, "order_executed_with_price",
        _REFERENCE,
        ("executed_shares", 4, INTEGER),
        _MATCH,
        ("printable", 1, LETTER),
        ("execution_price", 4, PRICE4),
    ),
    _message("X", 23, "order_cancel", _REFERENCE, ("canceled_shares", 4, INTEGER)),
    _message("D", 19, "order_delete", _REFERENCE),
    _message(
        "U", 35, "order_replace",
        ("original_order_reference_number", 8, INTEGER),
        ("new_order_reference_number", 8, INTEGER),
        ("shares", 4, INTEGER),
        ("price", 4, PRICE4),
    ),
    _message("P", 44, "non_cross_trade", *_ADD, _MATCH),
    _message(
        "Q", 40, "cross_trade",
        ("cross_shares", 8, INTEGER),
        _STOCK,
        ("cross_price", 4, PRICE4),
        _MATCH,
        ("cross_type", 1, LETTER),
    ),
    _message("B", 19, "broken_trade", _MATCH),
    _message(
        "I", 50, "net_order_imbalance_indicator",
        ("paired_shares", 8, INTEGER),
        ("imbalance_shares", 8, INTEGER),
        ("imbalance_direction", 1, LETTER),
        _STOCK,
        ("far_price", 4, PRICE4),
        ("near_price", 4, PRICE4),
        ("current_reference_price", 4, PRICE4),
        ("cross_type", 1, LETTER),
        ("price_variation_indicator", 1, LETTER),
    ),
    _message(
        "N", 20, "retail_price_improvement_indicator",
        _STOCK,
        ("interest_flag", 1, LETTER),
    ),
    _message(
        "O", 48, "direct_listing_with_capital_raise_price_discovery",
        _STOCK,
        ("open_eligibility_status", 1, LETTER),
        ("minimum_allowable_price", 4, PRICE4),
        ("maximum_allowable_price", 4, PRICE4),
        ("near_execution_price", 4, PRICE4),
        ("near_execution_time", 8, TIMESTAMP),
        ("lower_price_range_collar", 4, PRICE4),
        ("upper_price_range_collar", 4, PRICE4),
    ),
)  # fmt: skip

#: letter -> message.
BY_LETTER: Final[dict[str, Message]] = {message.letter: message for message in MESSAGES}

#: Length in bytes by type byte, without the 2-byte prefix; 0: ITCH 5.0 has no such type. u8[256], read-only.
LENGTHS: Final[NDArray[np.uint8]] = np.zeros(256, np.uint8)

#: Offset of the stock field in the message by type byte; 0: the type has none. u8[256], read-only.
STOCK_OFFSETS: Final[NDArray[np.uint8]] = np.zeros(256, np.uint8)

for _each in MESSAGES:
    LENGTHS[_each.type] = _each.length
    STOCK_OFFSETS[_each.type] = next((f.offset for f in _each.fields if f.name == "stock"), 0)
LENGTHS.flags.writeable = False
STOCK_OFFSETS.flags.writeable = False


def _wire_dtype(message: Message) -> np.dtype[Any]:
    """Packed, big-endian, with the 2-byte length in front. A 6-byte time is `timestamp_high` and `_low`."""
    columns: list[tuple[str, str]] = [("length", ">u2")]
    for field in message.fields:
        if field.kind in (LETTER, TEXT):
            columns.append((field.name, f"S{field.size}"))
        elif field.size == 6:
            columns += [(f"{field.name}_high", ">u2"), (f"{field.name}_low", ">u4")]
        else:
            columns.append((field.name, f">u{field.size}"))
    return np.dtype(columns)


def _table_dtype(message: Message) -> np.dtype[Any]:
    """`seq`, then every field but the type, in native byte order, packed."""
    columns: list[tuple[str, str]] = [("seq", "u8")]
    for field in message.fields[1:]:
        if field.kind in (LETTER, TEXT):
            columns.append((field.name, f"S{field.size}"))
        else:
            columns.append((field.name, f"u{8 if field.kind is TIMESTAMP else field.size}"))
    return np.dtype(columns)


#: letter -> dtype of a framed message as it is on the wire, prefix included (itemsize is length + 2).
WIRE_DTYPES: Final[dict[str, np.dtype[Any]]] = {m.letter: _wire_dtype(m) for m in MESSAGES}

#: letter -> dtype of the rows of `parse_tables`. The type itself is not a column: it is the table's key.
TABLE_DTYPES: Final[dict[str, np.dtype[Any]]] = {m.letter: _table_dtype(m) for m in MESSAGES}


def framed_at(data: NDArray[np.uint8], letter: str) -> NDArray[Any]:
    """A view of u8[n] as framed messages of one type that start at *every* byte, overlapping.

    Index it with an array of positions to gather messages, or assign to it so to scatter them, in one pass.
    Raises ValueError when `data` is shorter than one framed message.
    """
    size = WIRE_DTYPES[letter].itemsize
    return np.ndarray((len(data) - size + 1,), dtype=f"V{size}", buffer=data, strides=(1,))
