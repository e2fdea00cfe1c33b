"""The kernel behind the parser `databento`: MBO records of DBN to EVENTs, as docs/databento.md tells.

A record is `words` u32: length in words, rtype and publisher; instrument; ts_event; order id; price; size;
flags, channel, action and side; ts_recv; ts_in_delta; sequence. EVENTs are written as i64[m, 8].
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Status
from trident_core.dtypes import EventFlag
from trident_core.jit import njit_entry, njit_inlined, njit_kernel
from trident_core.tables.refs import erase, find, insert

I64 = NDArray[np.int64]

#: rtype of MBO records, their least length in words; the record with which the feed marks the end.
MBO_RTYPE: Final = 0xA0
MBO_WORDS: Final = 14
END_RTYPE: Final = 0xFE
HEADER_WORDS: Final = 4
WORD_BYTES: Final = 4

UNDEFINED_PRICE: Final = (1 << 63) - 1
UNDEFINED_SIZE: Final = (1 << 32) - 1

TOP_OF_BOOK, PRICE_LEVEL, BAD_BOOK = 64, 16, 4

#: Slots of `state`: next word, EVENTs written, next number, publisher followed (-1: none yet), free slots,
#: living orders, instrument to be cleared, source offset of the trade held back (-1: none).
AT, COUNT, SEQ, PUBLISHER, FREE, LIVING, CLEARED, HELD = range(8)
STATE_SLOTS: Final = 8

#: Columns of `live`: what is known of an order. SIZE is UNKNOWN for one that only a fill told of.
#: AGGRESSOR is the order id of the trade that a fill went with.
REF, INSTRUMENT, SIZE, PRICE, FILLED, FILL_PRICE, FILL_TS, PRINTED, AGGRESSOR = range(9)
LIVE_COLUMNS: Final = 9
UNKNOWN: Final = -1

#: Rows of `found` and `places`; their names: `trident_parser.databento.NOTES`.
(
    OTHER_RECORD, OTHER_PUBLISHER, NOT_AN_ORDER, NO_VALUE, MODIFIED_UNKNOWN, UNCHANGED, FILL_APART,
    NO_ACTION, BAD_ACTION, BEFORE_SESSION, AFTER_SESSION, MAYBE_BAD_BOOK,
) = range(12)  # fmt: skip
NOTE_COUNT: Final = 12

#: What the kernel returns besides a Status: the orders of state[CLEARED] are to be taken out first.
CLEAR: Final = 100

_A, _B, _C, _D, _F, _M, _N, _P, _R, _S, _T, _U, _X = (ord(letter) for letter in "ABCDFMNPRSTUX")
_DAY_NS: Final = 24 * 3600 * 1_000_000_000
_UNPRINTABLE: Final = int(EventFlag.NON_PRINTABLE)
_OK, _NEED_MORE, _OUT_FULL, _MALFORMED = (
    int(Status.OK), int(Status.NEED_MORE), int(Status.OUT_FULL), int(Status.MALFORMED)
)  # fmt: skip


@njit_inlined
def _long(words: Any, at: int) -> int:
    """Eight bytes as i64."""
    low, high = np.uint64(words[at]), np.uint64(words[at + 1])
    return np.int64(low | (high << np.uint64(32)))  # type: ignore[return-value]


@njit_inlined
def _size(words: Any, at: int) -> int:
    """The size of the record at `at`."""
    return np.int64(words[at + 8])  # type: ignore[return-value]


@njit_kernel
def _note(found: I64, places: I64, what: int, offset: int) -> None:
    if found[what] < places.shape[1]:
        places[what, found[what]] = offset
    found[what] += 1


@njit_kernel
def _side(letter: int) -> int:
    """The side of an order: B, S, or 0."""
    return _B if letter == _B else (_S if letter == _A else 0)


@njit_kernel
def _emit(
    words: Any, at: int, out: I64, state: I64, midnight: int, found: I64, places: I64, offset: int,
    kind: int, side: int, flags: int, ref: int, ref2: int, price: int, qty: int,
) -> None:  # fmt: skip
    """Write an EVENT of the record at `at`. A time before midnight is midnight; an add keeps it in ref2."""
    ts = _long(words, at + 2) - midnight
    if ts < 0:
        _note(found, places, BEFORE_SESSION, offset)
        if kind == _A:
            ref2 = ts + midnight
        ts = 0
    elif ts >= _DAY_NS:
        _note(found, places, AFTER_SESSION, offset)
    row = out[state[COUNT]]
    row[0], row[1], row[2], row[3], row[4], row[5] = state[SEQ], ts, ref, ref2, price, qty
    row[6] = np.int64(words[at + 1]) | (kind << 32) | (side << 40) | (flags << 48)
    publisher, tail = np.int64(words[at] >> 16), np.int64(words[at + 9] & 0xFFFF)
    row[7] = np.int64(words[at + 13]) | (publisher << 32) | (tail << 48)
    state[COUNT] += 1
    state[SEQ] += 1


@njit_kernel
def _know(
    live: I64, free: Any, keys: Any, slots: Any, state: I64, ref: int, instrument: int, size: int, price: int
) -> int:
    """The slot of an order, new or known, with its size and price set, and without fills."""
    slot = find(keys, slots, ref)
    if slot < 0:
        state[FREE] -= 1
        state[LIVING] += 1
        slot = free[state[FREE]]
        insert(keys, slots, ref, slot)
    live[slot, REF], live[slot, INSTRUMENT] = ref, instrument
    live[slot, SIZE], live[slot, PRICE], live[slot, FILLED] = size, price, 0
    return slot


@njit_kernel
def forget(live: I64, free: Any, keys: Any, slots: Any, state: I64, slot: int) -> None:
    """The order of a slot is gone."""
    erase(keys, slots, live[slot, REF])
    live[slot, SIZE] = UNKNOWN
    live[slot, INSTRUMENT] = UNKNOWN
    free[state[FREE]] = slot
    state[FREE] += 1
    state[LIVING] -= 1


@njit_kernel
def _fill(
    words: Any, at: int, live: I64, free: Any, keys: Any, slots: Any, state: I64, printed: bool,
    aggressor: int,
) -> None:  # fmt: skip
    """F changes nothing yet: the C or M that goes with it does, and then is an execution."""
    ref, ts = _long(words, at + 4), _long(words, at + 2)
    slot = find(keys, slots, ref)
    if slot < 0:
        slot = _know(live, free, keys, slots, state, ref, words[at + 1], UNKNOWN, 0)
    if live[slot, FILL_TS] != ts:
        live[slot, FILLED] = 0
    live[slot, PRINTED] = printed and live[slot, FILLED] == 0
    live[slot, AGGRESSOR] = aggressor
    live[slot, FILLED] += words[at + 8]
    live[slot, FILL_PRICE], live[slot, FILL_TS] = _long(words, at + 6), ts


@njit_kernel
def _cancel(
    words: Any, at: int, gone: int, out: I64, live: I64, free: Any, keys: Any, slots: Any, state: I64,
    midnight: int, found: I64, places: I64, offset: int, ref2: int,
) -> None:  # fmt: skip
    """`gone` shares leave an order: executed if a fill of as many went before, else cancelled."""
    ref = _long(words, at + 4)
    slot = find(keys, slots, ref)
    kind, flags, price = _X, 0, _long(words, at + 6)
    if slot >= 0:
        if live[slot, FILLED] > 0:
            if live[slot, FILLED] == gone and live[slot, FILL_TS] == _long(words, at + 2):
                kind, price = _C, live[slot, FILL_PRICE]
                flags = 0 if live[slot, PRINTED] else _UNPRINTABLE
                ref2 = ref2 if ref2 else live[slot, AGGRESSOR]
            else:
                _note(found, places, FILL_APART, offset)
            live[slot, FILLED] = 0
        live[slot, SIZE] -= gone
        if live[slot, SIZE] <= 0:
            forget(live, free, keys, slots, state, slot)
    side = _side(words[at + 9] >> 24)
    _emit(
        words, at, out, state, midnight, found, places, offset, kind, side, flags, ref, ref2, price, gone
    )  # fmt: skip


@njit_kernel
def _modify(
    words: Any, at: int, out: I64, live: I64, free: Any, keys: Any, slots: Any, state: I64, midnight: int,
    found: I64, places: I64, offset: int,
) -> None:  # fmt: skip
    """M: fewer shares at the same price leave the order its place: a cancel. All else is a replace."""
    ref, price, size = _long(words, at + 4), _long(words, at + 6), _size(words, at)
    side = _side(words[at + 9] >> 24)
    slot = find(keys, slots, ref)
    if slot < 0 or live[slot, SIZE] < 0:
        _note(found, places, MODIFIED_UNKNOWN, offset)
        _know(live, free, keys, slots, state, ref, words[at + 1], size, price)
        _emit(words, at, out, state, midnight, found, places, offset, _A, side, 0, ref, 0, price, size)
        return
    less = live[slot, SIZE] - size
    if size == 0 or (price == live[slot, PRICE] and less > 0):
        _cancel(words, at, less, out, live, free, keys, slots, state, midnight, found, places, offset, ref)
    elif price == live[slot, PRICE] and less == 0:
        _note(found, places, UNCHANGED, offset)
    else:
        if live[slot, FILLED] > 0:
            _note(found, places, FILL_APART, offset)
        _know(live, free, keys, slots, state, ref, words[at + 1], size, price)
        _emit(words, at, out, state, midnight, found, places, offset, _U, side, 0, ref, ref, price, size)


@njit_kernel
def _is_known(live: I64, keys: Any, slots: Any, ref: int) -> bool:
    slot = find(keys, slots, ref)
    return slot >= 0 and live[slot, SIZE] > 0


@njit_kernel
def _same_print(words: Any, fill: int, trade: Any, live: I64, keys: Any, slots: Any) -> bool:
    """Does the record at `fill` say which known order `trade`, the record before, was with?"""
    return (
        (words[fill] >> 8) & 0xFF == MBO_RTYPE
        and (words[fill + 9] >> 16) & 0xFF == _F
        and words[fill] >> 16 == trade[0] >> 16
        and words[fill + 1] == trade[1]
        and words[fill + 13] == trade[13]
        and words[fill + 8] == trade[8]
        and _long(words, fill + 2) == _long(trade, 2)
        and _long(words, fill + 6) == _long(trade, 6)
        and _is_known(live, keys, slots, _long(words, fill + 4))
    )


@njit_kernel
def _act(
    action: int, words: Any, at: int, out: I64, live: I64, free: Any, keys: Any, slots: Any, state: I64,
    midnight: int, found: I64, places: I64, offset: int,
) -> None:  # fmt: skip
    """A record, by its action. R has done its work already."""
    price, size, flags = _long(words, at + 6), _size(words, at), words[at + 9] & 0xFF
    if action == _R:
        return
    if action == _N:
        _note(found, places, NO_ACTION, offset)
    elif action != _A and action != _C and action != _M and action != _F and action != _T:
        _note(found, places, BAD_ACTION, offset)
    elif action != _T and flags & (TOP_OF_BOOK | PRICE_LEVEL):
        _note(found, places, NOT_AN_ORDER, offset)
    elif size == UNDEFINED_SIZE or (price == UNDEFINED_PRICE and action != _C):
        _note(found, places, NO_VALUE, offset)
    elif action == _F:
        _fill(words, at, live, free, keys, slots, state, False, 0)
    elif action == _C:
        _cancel(words, at, size, out, live, free, keys, slots, state, midnight, found, places, offset, 0)
    elif action == _M:
        _modify(words, at, out, live, free, keys, slots, state, midnight, found, places, offset)
    else:
        ref, side = _long(words, at + 4), _side(words[at + 9] >> 24)
        if action == _A:
            _know(live, free, keys, slots, state, ref, words[at + 1], size, price)
        elif side:
            side = _B + _S - side  # T has the aggressor's, EVENT the resting order's
        kind = _A if action == _A else _P
        _emit(words, at, out, state, midnight, found, places, offset, kind, side, 0, ref, 0, price, size)


@njit_entry
def resolve(
    words: Any, out: I64, live: I64, free: Any, keys: Any, slots: Any, state: I64, midnight: int, start: int,
    found: I64, places: I64, counts: Any, held: Any,
) -> int:  # fmt: skip
    """Records from state[AT] on into `out` from state[COUNT] on; -> a Status, or CLEAR. `start` is the source
    offset of words[0]. A trade waits in `held` u32[14] for the record after it, which may go with it."""
    end = len(words)
    while state[AT] < end:
        at = state[AT]
        if state[COUNT] == len(out):
            return _OUT_FULL
        length = np.int64(words[at] & 0xFF)
        if length < HEADER_WORDS:
            return _MALFORMED
        if at + length > end:
            return _NEED_MORE
        rtype, publisher = (words[at] >> 8) & 0xFF, np.int64(words[at] >> 16)
        offset = start + WORD_BYTES * at
        orders = rtype == MBO_RTYPE and length >= MBO_WORDS
        if state[HELD] >= 0:
            if orders and _same_print(words, at, held, live, keys, slots):
                counts[_F] += np.uint64(1)
                _fill(words, at, live, free, keys, slots, state, True, _long(held, 4))
                state[AT] = at + length
            else:
                _act(
                    _T, held, 0, out, live, free, keys, slots, state, midnight, found, places, state[HELD]
                )  # fmt: skip
            state[HELD] = -1
            continue
        if not orders:
            if rtype != END_RTYPE:
                _note(found, places, OTHER_RECORD, offset)
            state[AT] = at + length
            continue
        if state[PUBLISHER] < 0:
            state[PUBLISHER] = publisher
        if publisher != state[PUBLISHER]:
            _note(found, places, OTHER_PUBLISHER, offset)
            state[AT] = at + length
            continue
        action, flags = (words[at + 9] >> 16) & 0xFF, words[at + 9] & 0xFF
        if action == _R:
            if state[CLEARED] != np.int64(words[at + 1]):
                state[CLEARED] = words[at + 1]
                return CLEAR
            state[CLEARED] = -1
        if flags & BAD_BOOK:
            _note(found, places, MAYBE_BAD_BOOK, offset)
        counts[action] += np.uint64(1)
        if action == _T:
            for i in range(MBO_WORDS):
                held[i] = words[at + i]
            state[HELD] = offset
        else:
            _act(
                action, words, at, out, live, free, keys, slots, state, midnight, found, places, offset
            )  # fmt: skip
        state[AT] = at + length
    return _OK


@njit_entry
def clear(
    words: Any, refs: Any, out: I64, live: I64, free: Any, keys: Any, slots: Any, state: I64, midnight: int,
    start: int, found: I64, places: I64,
) -> int:  # fmt: skip
    """A deletion for each of `refs`, as the R at state[AT] demands; -> how many there was room for."""
    at = state[AT]
    for i in range(len(refs)):
        if state[COUNT] == len(out):
            return i
        slot = find(keys, slots, refs[i])
        forget(live, free, keys, slots, state, slot)
        offset = start + WORD_BYTES * at
        _emit(words, at, out, state, midnight, found, places, offset, _D, 0, 0, refs[i], 0, 0, 0)
    return len(refs)
