"""The reference parser: ITCH 5.0 in plain Python, one small decoder for each message type.

The decoders are written by hand from the specification, section 4; the typed tables are read through the
dtypes of `itch50`: two ways to the same bytes, which the tests hold against each other. What stands in which
column of an EVENT, and every rule of framing: docs/contracts/parser.md.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import ParseResult, Status
from trident_core.dtypes import EventFlag, Events, Frames
from trident_core.session import Session
from trident_core.stats import Anomalies
from trident_parser.directory import teach
from trident_parser.encode import encode_events, encode_rows
from trident_parser.itch50 import LENGTHS, STOCK_OFFSETS
from trident_parser.typed import check_frames, check_out, typed_rows

# --- EVENT columns of each type -----------------------------------------------------------------------------
# A decoder is given the bytes and where its frame starts, and answers the seven columns that differ by type.
# ">13x" steps over the 2-byte prefix and the 11-byte header; ">21x" over the stock that follows, too.

#: ref, ref2, price, qty, side, flags, aux
Columns = tuple[int, int, int, int, int, int, bytes]
Decoder = Callable[[memoryview, int], Columns]

_EVENT: Final = Struct("<QQQQqQIBBH8s")  # the layout of EVENT, in the order of its columns
_HEADER: Final = Struct(">3xH2xHI").unpack_from  # locate, timestamp: high 16 bits, low 32 bits
_NO_AUX: Final = bytes(8)

_EVENT_CODE: Final = Struct(">13xc").unpack_from
_STOCK_DIRECTORY: Final = Struct(">21x2sIxc2scxcxc").unpack_from
_TRADING_ACTION: Final = Struct(">21xcx4s").unpack_from
_AFTER_STOCK_1: Final = Struct(">21xc").unpack_from
_AFTER_STOCK_2: Final = Struct(">21x2s").unpack_from
_POSITION: Final = Struct(">13x4s8x3s").unpack_from
_DECLINE_LEVELS: Final = Struct(">13xq").unpack_from
_IPO: Final = Struct(">21xIcI").unpack_from
_COLLAR: Final = Struct(">21xIIII").unpack_from
_ADD: Final = Struct(">13xQBI8xI").unpack_from
_ADD_MPID: Final = Struct(">13xQBI8xI4s").unpack_from
_EXECUTED: Final = Struct(">13xQIQ").unpack_from
_EXECUTED_AT: Final = Struct(">13xQIQcI").unpack_from
_CANCEL: Final = Struct(">13xQI").unpack_from
_NUMBER: Final = Struct(">13xQ").unpack_from
_REPLACE: Final = Struct(">13xQQII").unpack_from
_TRADE: Final = Struct(">13xQBI8xIQ").unpack_from
_CROSS: Final = Struct(">13xQ8xIQc").unpack_from
_IMBALANCE: Final = Struct(">13xQQB12xII2s").unpack_from
_DIRECT_LISTING: Final = Struct(">21xcI4xI").unpack_from

_AUX_TWO_PRICES: Final = Struct("<II").pack
_AUX_LETTERS_AND_PRICE: Final = Struct("<4sI").pack


def _system_event(data: memoryview, at: int) -> Columns:
    (code,) = _EVENT_CODE(data, at)
    return 0, 0, 0, 0, 0, 0, code


def _stock_directory(data: memoryview, at: int) -> Columns:
    category_and_status, round_lot, classification, sub_type, authenticity, ipo, etp = _STOCK_DIRECTORY(
        data, at
    )
    aux = category_and_status + classification + sub_type + authenticity + etp + ipo
    return 0, 0, 0, round_lot, 0, 0, aux


def _trading_action(data: memoryview, at: int) -> Columns:
    state, reason = _TRADING_ACTION(data, at)
    return 0, 0, 0, 0, 0, 0, state + reason


def _letter_after_stock(data: memoryview, at: int) -> Columns:
    (letter,) = _AFTER_STOCK_1(data, at)
    return 0, 0, 0, 0, 0, 0, letter


def _operational_halt(data: memoryview, at: int) -> Columns:
    (market_and_action,) = _AFTER_STOCK_2(data, at)
    return 0, 0, 0, 0, 0, 0, market_and_action


def _participant_position(data: memoryview, at: int) -> Columns:
    mpid, primary_mode_state = _POSITION(data, at)
    return 0, 0, 0, 0, 0, 0, mpid + primary_mode_state


def _decline_levels(data: memoryview, at: int) -> Columns:
    (level_1,) = _DECLINE_LEVELS(data, at)
    return 0, 0, level_1, 0, 0, EventFlag.PRICE_8DP, _NO_AUX


def _ipo_quoting_period(data: memoryview, at: int) -> Columns:
    release_time, qualifier, price = _IPO(data, at)
    return 0, 0, price, release_time, 0, 0, qualifier


def _auction_collar(data: memoryview, at: int) -> Columns:
    reference_price, upper, lower, extension = _COLLAR(data, at)
    return 0, 0, reference_price, extension, 0, 0, _AUX_TWO_PRICES(upper, lower)


def _add_order(data: memoryview, at: int) -> Columns:
    reference, side, shares, price = _ADD(data, at)
    return reference, 0, price, shares, side, 0, _NO_AUX


def _add_order_mpid(data: memoryview, at: int) -> Columns:
    reference, side, shares, price, mpid = _ADD_MPID(data, at)
    return reference, 0, price, shares, side, 0, mpid


def _order_executed(data: memoryview, at: int) -> Columns:
    reference, shares, match = _EXECUTED(data, at)
    return reference, match, 0, shares, 0, 0, _NO_AUX


def _order_executed_at(data: memoryview, at: int) -> Columns:
    reference, shares, match, printable, price = _EXECUTED_AT(data, at)
    flags = EventFlag.NON_PRINTABLE if printable == b"N" else 0
    return reference, match, price, shares, 0, flags, _NO_AUX


def _order_cancel(data: memoryview, at: int) -> Columns:
    reference, shares = _CANCEL(data, at)
    return reference, 0, 0, shares, 0, 0, _NO_AUX


def _order_delete(data: memoryview, at: int) -> Columns:
    (reference,) = _NUMBER(data, at)
    return reference, 0, 0, 0, 0, 0, _NO_AUX


def _order_replace(data: memoryview, at: int) -> Columns:
    reference, new_reference, shares, price = _REPLACE(data, at)
    return reference, new_reference, price, shares, 0, 0, _NO_AUX


def _trade(data: memoryview, at: int) -> Columns:
    reference, side, shares, price, match = _TRADE(data, at)
    return reference, match, price, shares, side, 0, _NO_AUX


def _cross_trade(data: memoryview, at: int) -> Columns:
    shares, price, match, cross_type = _CROSS(data, at)
    return 0, match, price, shares, 0, 0, cross_type


def _broken_trade(data: memoryview, at: int) -> Columns:
    (match,) = _NUMBER(data, at)
    return 0, match, 0, 0, 0, 0, _NO_AUX


def _imbalance(data: memoryview, at: int) -> Columns:
    paired, imbalance, direction, near, reference_price, cross_and_variation = _IMBALANCE(data, at)
    aux = _AUX_LETTERS_AND_PRICE(cross_and_variation, near)
    return 0, imbalance, reference_price, paired, direction, 0, aux


def _direct_listing(data: memoryview, at: int) -> Columns:
    eligibility, minimum_price, near_price = _DIRECT_LISTING(data, at)
    return 0, 0, near_price, 0, 0, 0, _AUX_LETTERS_AND_PRICE(eligibility, minimum_price)


DECODERS: Final[dict[int, Decoder]] = {
    ord(letter): decoder
    for letter, decoder in {
        "S": _system_event,
        "R": _stock_directory,
        "H": _trading_action,
        "Y": _letter_after_stock,
        "L": _participant_position,
        "V": _decline_levels,
        "W": _system_event,
        "K": _ipo_quoting_period,
        "J": _auction_collar,
        "h": _operational_halt,
        "A": _add_order,
        "F": _add_order_mpid,
        "E": _order_executed,
        "C": _order_executed_at,
        "X": _order_cancel,
        "D": _order_delete,
        "U": _order_replace,
        "P": _trade,
        "Q": _cross_trade,
        "B": _broken_trade,
        "I": _imbalance,
        "N": _letter_after_stock,
        "O": _direct_listing,
    }.items()
}

# --- Framing ------------------------------------------------------------------------------------------------

_SEQ_MAX: Final = (1 << 64) - 1
_LENGTHS: Final = tuple(map(int, LENGTHS))
_STOCK_OFFSETS: Final = tuple(map(int, STOCK_OFFSETS))


def _strict_length(data: memoryview, at: int, end: int) -> int:
    """Length of the message whose prefix is at `at`, by the prefix; or minus the Status that stops here."""
    if end - at < 2:
        return -Status.NEED_MORE
    length = data[at] << 8 | data[at + 1]
    if length == 0:
        return -Status.END
    return length if at + 2 + length <= end else -Status.NEED_MORE


def _lenient_length(data: memoryview, at: int, end: int) -> int:
    """The same by the type; the prefix is looked at only for types that ITCH 5.0 does not have."""
    if end - at < 3:
        return -Status.NEED_MORE
    length = _LENGTHS[data[at + 2]] or data[at] << 8 | data[at + 1]
    if length == 0:
        return -Status.MALFORMED
    return length if at + 2 + length <= end else -Status.NEED_MORE


# --- The parser ---------------------------------------------------------------------------------------------


class ReferenceParser:
    """ITCH 5.0 -> EVENTs and typed tables, and back. Satisfies Parser, TableParser and Encoder.

    Strict by default: lengths come from the 2-byte prefix. `lenient=True`: lengths come from the type, for
    files whose prefixes are zero. Memory: constant in the input, but for `parse_tables`, which is linear.
    """

    def __init__(self, session: Session, *, lenient: bool = False) -> None:
        self.session = session
        self.lenient = lenient
        self.anomalies = Anomalies()
        self.counts: NDArray[np.uint64] = np.zeros(256, np.uint64)
        self.next_seq = 1
        self.position = 0
        self._message_length = _lenient_length if lenient else _strict_length
        self._stop = (0, Status.OK)
        self._agreed: dict[int, bytes] = {}  # locate -> stock field that says what the directory says
        self._agreed_version = session.directory.version

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        """See `trident_core.contracts.Parser`."""
        check_frames(frames)
        check_out(out)
        data = frames.data
        cells = out.view(np.uint8).data
        count = 0
        for letter, seq, at in self._walk(data, len(out)):
            locate, high, low = _HEADER(data, at)
            ref, ref2, price, qty, side, flags, aux = DECODERS[letter](data, at)
            ts = high << 32 | low
            _EVENT.pack_into(
                cells, 64 * count, seq, ts, ref, ref2, price, qty, locate, letter, side, flags, aux
            )
            count += 1
        consumed, status = self._stop
        return ParseResult(consumed, count, status)

    def parse_tables(self, frames: Frames, types: str = "") -> dict[str, NDArray[Any]]:
        """See `trident_core.contracts.TableParser`. `position` tells where it stopped.

        The dtypes are `itch50.TABLE_DTYPES`; texts keep their padding, so that `encode_rows` is exact.
        """
        check_frames(frames)
        found: dict[int, tuple[list[int], list[int]]] = {}
        for letter, seq, at in self._walk(frames.data, sys.maxsize):
            seqs, starts = found.setdefault(letter, ([], []))
            seqs.append(seq)
            starts.append(at)
        return {
            chr(letter): typed_rows(frames, chr(letter), *where)
            for letter, where in found.items()
            if not types or chr(letter) in types
        }

    def encode_events(self, events: Events) -> Frames:
        """See `trident_parser.encode.encode_events`."""
        return encode_events(events, self.session)

    def encode_rows(self, type_letter: str, rows: NDArray[Any]) -> Frames:
        """See `trident_parser.encode.encode_rows`."""
        return encode_rows(type_letter, rows)

    def _walk(self, data: memoryview, room: int) -> Iterator[tuple[int, int, int]]:
        """Go from frame to frame; yield (type, seq, start of the frame) of the messages to decode.

        Counts every message, skips and reports those that cannot be decoded, teaches the directory. Ends
        after `room` messages or where the framing ends; `_stop` then says how far it came, and why.
        """
        if self._agreed_version != self.session.directory.version:  # someone else wrote to it
            self._agreed.clear()
        at, end, seq = 0, len(data), self.next_seq
        seen: dict[int, int] = {}
        status = Status.OK
        while at < end:
            if room == 0:
                status = Status.OUT_FULL
                break
            length = self._message_length(data, at, end)
            if length <= 0:
                status = Status(-length)
                break
            letter = data[at + 2]
            seen[letter] = seen.get(letter, 0) + 1
            if length == _LENGTHS[letter]:
                if _STOCK_OFFSETS[letter]:
                    self._learn(data, at, letter)
                yield letter, seq, at
                room -= 1
            else:
                problem = "wrong_length" if _LENGTHS[letter] else "unknown_type"
                self.anomalies.add(problem, at=self.position + at)
            seq = seq + 1 & _SEQ_MAX  # a hostile transport may number messages up to the end
            at += 2 + length
        if status is Status.END:
            at += 2
        for letter, number in seen.items():
            self.counts[letter] += np.uint64(number)
        self.next_seq = seq
        self.position += at
        self._agreed_version = self.session.directory.version
        self._stop = (at, status)

    def _learn(self, data: memoryview, at: int, letter: int) -> None:
        """Teach the directory the symbol that a message carries, unless it is known to say the same."""
        locate = data[at + 3] << 8 | data[at + 4]
        start = at + 2 + _STOCK_OFFSETS[letter]
        if letter != ord("R") and self._agreed.get(locate) == bytes(data[start : start + 8]):
            return
        stock = teach(self.session, self.anomalies, data, at, self.position + at)
        if stock:
            self._agreed[locate] = stock
