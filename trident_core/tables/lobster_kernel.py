"""The kernel behind LOBSTER's files: which events they have, in their words, with the levels after each."""

from __future__ import annotations

from typing import Any, Final

from trident_core.contracts import TradingState
from trident_core.dtypes import EventFlag, Outcome
from trident_core.jit import njit_entry, njit_kernel
from trident_core.tables.ladder_kernel import (
    I64,
    LENGTH,
    NEXT,
    PRICE,
    PRICE_OF,
    QTY,
    QTY_OF,
    ROWS,
    SIDE_OF,
    START,
    STATE_SLOTS,
    add,
    change,
    has_room,
    take_out,
)  # fmt: skip
from trident_core.tables.refs import find

#: Columns of `heads`: number of the symbol, then LOBSTER's six (time in ns).
SYMBOL, TIME, TYPE, ORDER_ID, SIZE, MESSAGE_PRICE, DIRECTION = range(7)
HEAD_COLUMNS: Final = 7
#: The most rows of one event: a replace that evicts.
ROWS_MAX: Final = 3

#: LOBSTER's types.
SUBMISSION, CANCEL, DELETION, EXECUTION, HIDDEN, CROSS, HALT = range(1, 8)
#: LOBSTER's prices of levels that are not there.
NO_ASK: Final = 9_999_999_999
NO_BID: Final = -9_999_999_999

#: Slots of `settings`: levels, first time of day that is written (ns), factor and divisor of prices.
DEPTH, SINCE, TIMES, DIVISOR = range(4)
#: Slots of `counts`: what the files do not have, or have otherwise. Names: `trident_core.tables.lobster`.
OUTSIDE, OTHER_PRICE, NOT_PRINTABLE, EMPTY, VOID, EVICTED, FINER = range(7)
COUNT_SLOTS: Final = 7
#: `state` goes on with: 1 if `heads` was too full for one more event.
FULL: Final = STATE_SLOTS
LOBSTER_STATE_SLOTS: Final = STATE_SLOTS + 1

_A, _F, _E, _C, _X, _D, _U, _P, _Q, _H, _B, _O, _I = (ord(letter) for letter in "AFECXDUPQHBOI")
_SELL = ord("S")
_TRADING, _QUOTATION = int(TradingState.TRADING), int(TradingState.QUOTATION)
_HALTED, _PAUSED = int(TradingState.HALTED), int(TradingState.PAUSED)
_UNKNOWN, _DUPLICATE, _REJECTED = (
    int(Outcome.UNKNOWN_REF), int(Outcome.DUPLICATE_REF), int(Outcome.REJECTED)
)  # fmt: skip
_UNPRINTABLE = int(EventFlag.NON_PRINTABLE)


@njit_kernel
def _scaled(price: int, settings: I64, counts: I64) -> int:
    """A price in dollars times 10,000; one that is finer than that is counted."""
    price *= settings[TIMES]
    if settings[DIVISOR] == 1:
        return price
    whole = price // settings[DIVISOR]
    if whole * settings[DIVISOR] != price:
        counts[FINER] += 1
    return whole  # type: ignore[no-any-return]


@njit_kernel
def _write_levels(
    levels: I64, sides: I64, symbol: int, settings: I64, counts: I64, books: I64, row: int
) -> None:
    """Ask price, ask size, bid price, bid size of each level, best first."""
    for b in range(2):
        side = 2 * symbol + 1 - b
        end = sides[side, START] + sides[side, LENGTH]
        there = min(settings[DEPTH], sides[side, LENGTH])
        for n in range(settings[DEPTH]):
            at = 4 * n + 2 * b
            if n < there:
                key = levels[end - 1 - n, PRICE]
                books[row, at] = _scaled(key if b else -key, settings, counts)
                books[row, at + 1] = levels[end - 1 - n, QTY]
            else:
                books[row, at] = NO_BID if b else NO_ASK
                books[row, at + 1] = 0


@njit_kernel
def _write(
    symbol: int, ts: int, kind: int, ref: int, size: int, price: int, buy: bool, rank: int,
    levels: I64, sides: I64, state: I64, settings: I64, counts: I64, heads: I64, books: I64,
) -> None:  # fmt: skip
    """A row of both files, if the time is in the window and the level (`rank` are better) in the depth."""
    if ts < settings[SINCE]:
        return
    if rank >= settings[DEPTH]:
        counts[OUTSIDE] += 1
        return
    row = state[ROWS]
    state[ROWS] = row + 1
    heads[row, SYMBOL], heads[row, TIME], heads[row, TYPE] = symbol, ts, kind
    heads[row, ORDER_ID], heads[row, SIZE] = ref, size
    heads[row, MESSAGE_PRICE] = price if kind == HALT else _scaled(price, settings, counts)
    heads[row, DIRECTION] = 1 if buy else -1
    _write_levels(levels, sides, symbol, settings, counts, books, row)


@njit_kernel
def _delete(
    ts: int, ref: int, slot: int,
    orders: I64, free: Any, keys: Any, slots: Any, levels: I64, sides: I64, state: I64, settings: I64,
    counts: I64, heads: I64, books: I64, kind: int,
) -> None:  # fmt: skip
    """An order leaves with all it has."""
    side, price, size = orders[slot, SIDE_OF], orders[slot, PRICE_OF], orders[slot, QTY_OF]
    buy = side % 2 == 0
    rank = take_out(orders, free, keys, slots, levels, sides, state, ref, slot)
    _write(
        side >> 1, ts, kind, ref, size, price if buy else -price, buy, rank,
        levels, sides, state, settings, counts, heads, books,
    )  # fmt: skip


@njit_kernel
def _reduce(
    kind: int, ts: int, ref: int, gone: int,
    orders: I64, free: Any, keys: Any, slots: Any, levels: I64, sides: I64, state: I64, settings: I64,
    counts: I64, heads: I64, books: I64,
) -> None:  # fmt: skip
    """E, C, X, D: shares leave an order."""
    slot = find(keys, slots, ref)
    if slot < 0:
        return
    executed = kind == _E or kind == _C
    if kind == _D or gone >= orders[slot, QTY_OF]:
        _delete(
            ts, ref, slot, orders, free, keys, slots, levels, sides, state, settings, counts, heads, books,
            EXECUTION if executed else DELETION,
        )  # fmt: skip
    elif gone == 0:
        counts[EMPTY] += ts >= settings[SINCE]
    else:
        orders[slot, QTY_OF] -= gone
        side, price = orders[slot, SIDE_OF], orders[slot, PRICE_OF]
        buy = side % 2 == 0
        rank = change(levels, sides, state, side, price, -gone, 0)
        _write(
            side >> 1, ts, EXECUTION if executed else CANCEL, ref, gone, price if buy else -price, buy, rank,
            levels, sides, state, settings, counts, heads, books,
        )  # fmt: skip


@njit_kernel
def _enter(
    outcome: int, symbol: int, buy: bool, ts: int, ref: int, price: int, size: int,
    orders: I64, free: Any, keys: Any, slots: Any, levels: I64, sides: I64, state: I64, settings: I64,
    counts: I64, heads: I64, books: I64,
) -> None:  # fmt: skip
    """A new order, after the eviction of another of its reference."""
    old = find(keys, slots, ref) if outcome == _DUPLICATE or outcome == _REJECTED else -1
    if old >= 0:
        counts[EVICTED] += ts >= settings[SINCE]
        _delete(
            ts, ref, old, orders, free, keys, slots, levels, sides, state, settings, counts, heads, books,
            DELETION,
        )  # fmt: skip
    if outcome == _REJECTED:
        return
    side, key = 2 * symbol + (0 if buy else 1), price if buy else -price
    rank = add(orders, free, keys, slots, levels, sides, state, ref, side, key, size)
    _write(
        symbol, ts, SUBMISSION, ref, size, price, buy, rank,
        levels, sides, state, settings, counts, heads, books,
    )  # fmt: skip


@njit_kernel
def _tell(
    kind: int, symbol: int, ts: int, ref: int, price: int, size: int, sell: bool, detail: int,
    levels: I64, sides: I64, state: I64, settings: I64, counts: I64, heads: I64, books: I64, halted: Any,
) -> None:  # fmt: skip
    """P, Q, H: the book is as it was. A state T ends a halt, or, without one, is no message."""
    if kind == _H:
        halts = detail == _HALTED or detail == _PAUSED
        if not halts and detail != _QUOTATION and not (detail == _TRADING and halted[symbol]):
            return
        halted[symbol] = detail != _TRADING
        what, ref, size, sell = HALT, 0, 0, True
        price = -1 if halts else (1 if detail == _TRADING else 0)
    elif kind == _Q:
        what, sell = CROSS, True
        ref = -1 if detail == _O else (-2 if detail == _C else (-4 if detail == _I else -3))
    else:
        what = HIDDEN
    if size == 0 and what != HALT:
        counts[EMPTY] += ts >= settings[SINCE]
        return
    _write(
        symbol, ts, what, ref, size, price, not sell, 0,
        levels, sides, state, settings, counts, heads, books,
    )  # fmt: skip


@njit_kernel
def _count_execution(
    kind: int, outcome: int, ts: int, price: int, resting: int, flags: int, settings: I64, counts: I64
) -> None:
    if kind == _C and outcome != 0 and outcome != _UNKNOWN and ts >= settings[SINCE]:
        counts[OTHER_PRICE] += price != resting
        counts[NOT_PRINTABLE] += flags & _UNPRINTABLE
    if kind == _B and ts >= settings[SINCE]:
        counts[VOID] += 1


@njit_entry
def tell(
    events: I64, types: Any, event_sides: Any, flags: Any, symbols: Any, effects: I64, outcomes: Any,
    effect_sides: Any, orders: I64, free: Any, keys: Any, slots: Any, levels: I64, sides: I64, state: I64,
    settings: I64, counts: I64, halted: Any, heads: I64, books: I64,
) -> None:  # fmt: skip
    """Apply events from state[NEXT] on; append to `heads` i64[m, 7] and `books` i64[m, 4 depth] a row for
    each message of LOBSTER's. Stops early when the pool is full, or, with state[FULL] set, the rows are."""
    for i in range(state[NEXT], len(types)):
        kind, outcome, symbol, ts = types[i], outcomes[i], symbols[i], events[i, 1]
        ref, price, size = events[i, 2], events[i, 4], events[i, 5]
        buy = effect_sides[i] != _SELL
        if state[ROWS] + ROWS_MAX > len(heads):
            state[NEXT], state[FULL] = i, 1
            return
        if not has_room(levels, sides, state, 2 * symbol + (0 if buy else 1)):
            state[NEXT] = i
            return
        _count_execution(kind, outcome, ts, price, effects[i, 0], flags[i], settings, counts)
        if outcome == 0:
            if kind == _P or kind == _Q or kind == _H:
                _tell(
                    kind, symbol, ts, ref, price, size, event_sides[i] == _SELL, events[i, 7] & 0xFF,
                    levels, sides, state, settings, counts, heads, books, halted,
                )  # fmt: skip
            continue
        adds = kind == _A or kind == _F
        if outcome == _UNKNOWN or (adds and outcome == _REJECTED):
            continue
        if not adds:
            _reduce(
                _D if kind == _U else kind, ts, ref, effects[i, 1],
                orders, free, keys, slots, levels, sides, state, settings, counts, heads, books,
            )  # fmt: skip
        if adds or kind == _U:
            _enter(
                outcome, symbol, buy, ts, ref if adds else events[i, 3], price, size,
                orders, free, keys, slots, levels, sides, state, settings, counts, heads, books,
            )  # fmt: skip
    state[NEXT] = len(types)
