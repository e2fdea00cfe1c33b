"""The kernel behind the fast `depth`: price levels of every symbol from what the book says it did.

A side is a run of one pool, `levels` i64[size, 3] (price, quantity, orders), worst first, so that the best is
at the end; `sides` i64[2 * symbols, 3] has its start, length and capacity. u64 quantities wrap. Asks are
kept with their prices negated: one order for both sides.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import Outcome
from trident_core.jit import njit_entry, njit_kernel
from trident_core.tables.refs import erase, find, insert

I64 = NDArray[np.int64]

PRICE, QTY, COUNT = range(3)
START, LENGTH, CAPACITY = range(3)

#: Columns of `orders`, what must be known of a live order to take it out when it is evicted.
SIDE_OF, PRICE_OF, QTY_OF = range(3)

#: Slots of `state`: free order slots, living orders, pool in use, next event, rows written.
FREE, LIVING, USED, NEXT, ROWS = range(5)
STATE_SLOTS: Final = 5

#: A side's first capacity; it doubles.
FIRST_LEVELS: Final = 8

_A, _F, _D, _U, _BUY = (ord(letter) for letter in "AFDUB")
_UNKNOWN, _DUPLICATE, _REJECTED = (
    int(Outcome.UNKNOWN_REF), int(Outcome.DUPLICATE_REF), int(Outcome.REJECTED)
)  # fmt: skip


@njit_kernel
def _index_of(levels: I64, start: int, length: int, key: int) -> int:
    """Where the level of `key` is, or would be put: searched from the best, where most is."""
    at = start + length
    while at > start and levels[at - 1, PRICE] > key:
        at -= 1
    if at > start and levels[at - 1, PRICE] == key:
        return at - 1
    return at


@njit_kernel
def change(levels: I64, sides: I64, state: I64, side: int, key: int, qty: int, orders: int) -> int:
    """Add `qty` and `orders` at a level; -> how many levels are better. The side has room for one more."""
    start, length = sides[side, START], sides[side, LENGTH]
    at = _index_of(levels, start, length, key)
    end = start + length
    if at < end and levels[at, PRICE] == key:
        levels[at, QTY] += qty
        levels[at, COUNT] += orders
        rank = end - 1 - at
        if levels[at, COUNT] == 0:
            for i in range(at, end - 1):
                levels[i, 0], levels[i, 1], levels[i, 2] = (
                    levels[i + 1, 0],
                    levels[i + 1, 1],
                    levels[i + 1, 2],
                )
            sides[side, LENGTH] = length - 1
        return rank  # type: ignore[no-any-return]
    for i in range(end, at, -1):
        levels[i, 0], levels[i, 1], levels[i, 2] = levels[i - 1, 0], levels[i - 1, 1], levels[i - 1, 2]
    levels[at, PRICE], levels[at, QTY], levels[at, COUNT] = key, qty, orders
    sides[side, LENGTH] = length + 1
    return end - at  # type: ignore[no-any-return]


@njit_kernel
def has_room(levels: I64, sides: I64, state: I64, side: int) -> bool:
    """Make room for one more level; False if the pool has none."""
    length, capacity = sides[side, LENGTH], sides[side, CAPACITY]
    if length < capacity:
        return True
    more = max(FIRST_LEVELS, 2 * capacity)
    to = state[USED]
    if to + more > len(levels):
        return False
    start = sides[side, START]
    for i in range(length):
        for j in range(3):
            levels[to + i, j] = levels[start + i, j]
    sides[side, START], sides[side, CAPACITY] = to, more
    state[USED] = to + more
    return True


@njit_entry
def repack(levels: I64, sides: I64, larger: I64) -> int:
    """Copy every side to the front of `larger`, without the gaps that moves left; -> the pool in use."""
    used = 0
    for side in range(len(sides)):
        start = sides[side, START]
        for i in range(sides[side, LENGTH]):
            for j in range(3):
                larger[used + i, j] = levels[start + i, j]
        sides[side, START] = used
        used += sides[side, CAPACITY]
    return used


@njit_kernel
def take_out(
    orders: I64, free: Any, keys: Any, slots: Any, levels: I64, sides: I64, state: I64, ref: int, slot: int
) -> int:
    """An order leaves with all it has; -> the rank of its level."""
    side = orders[slot, SIDE_OF]
    rank = change(levels, sides, state, side, orders[slot, PRICE_OF], -orders[slot, QTY_OF], -1)
    erase(keys, slots, ref)
    free[state[FREE]] = slot
    state[FREE] += 1
    state[LIVING] -= 1
    return rank


@njit_kernel
def _show(levels: I64, sides: I64, symbol: int, n: int, shown: I64, row: I64) -> bool:
    """Write the best n of both sides of `symbol` to `row`; -> whether it differs from what was shown."""
    for b in range(2):
        side = 2 * symbol + b
        end = sides[side, START] + sides[side, LENGTH]
        depth = min(n, sides[side, LENGTH])
        for k in range(n):
            at = 6 * k + 3 * b
            if k < depth:
                level = end - 1 - k
                price = levels[level, PRICE]
                row[at] = price if b == 0 else -price
                row[at + 1], row[at + 2] = levels[level, QTY], levels[level, COUNT]
            else:
                row[at], row[at + 1], row[at + 2] = 0, 0, 0
    changed = False
    for j in range(6 * n):
        if shown[symbol, j] != row[j]:
            changed = True
            shown[symbol, j] = row[j]
    return changed


@njit_kernel
def add(
    orders: I64, free: Any, keys: Any, slots: Any, levels: I64, sides: I64, state: I64, ref: int, side: int,
    key: int, qty: int,
) -> int:  # fmt: skip
    state[FREE] -= 1
    slot = free[state[FREE]]
    state[LIVING] += 1
    orders[slot, SIDE_OF], orders[slot, PRICE_OF], orders[slot, QTY_OF] = side, key, qty
    insert(keys, slots, ref, slot)
    return change(levels, sides, state, side, key, qty, 1)


@njit_kernel
def _apply(
    kind: int, outcome: int, symbol: int, buy: bool, ref: int, ref2: int, price: int, qty: int, gone: int,
    orders: I64, free: Any, keys: Any, slots: Any, levels: I64, sides: I64, state: I64, dirty: Any,
) -> int:  # fmt: skip
    """One event; -> the best rank it touched in its own symbol. Marks another symbol that it touched."""
    side = 2 * symbol + (0 if buy else 1)
    key = price if buy else -price
    rank = 1 << 30
    is_add = kind == _A or kind == _F
    new = ref if is_add else ref2
    if not is_add:
        slot = find(keys, slots, ref)
        if slot < 0:
            return rank
        if kind == _D or kind == _U or gone >= orders[slot, QTY_OF]:
            rank = take_out(orders, free, keys, slots, levels, sides, state, ref, slot)
        else:
            orders[slot, QTY_OF] -= gone
            rank = change(levels, sides, state, orders[slot, SIDE_OF], orders[slot, PRICE_OF], -gone, 0)
    if is_add or kind == _U:
        if outcome == _DUPLICATE or (kind == _U and outcome == _REJECTED):
            old = find(keys, slots, new)
            if old >= 0:
                owner = orders[old, SIDE_OF] >> 1
                at = take_out(orders, free, keys, slots, levels, sides, state, new, old)
                if owner == symbol:
                    rank = min(rank, at)
                else:
                    dirty[owner] = True
        if outcome != _REJECTED:
            rank = min(rank, add(orders, free, keys, slots, levels, sides, state, new, side, key, qty))
    return rank


@njit_entry
def climb(
    events: I64, types: Any, symbols: Any, effects: I64, outcomes: Any, effect_sides: Any, n: int,
    orders: I64, free: Any, keys: Any, slots: Any, levels: I64, sides: I64, state: I64, dirty: Any,
    shown: I64, rows: I64, at: I64,
) -> None:  # fmt: skip
    """Apply events from state[NEXT] on; a row of `rows` i64[m, 6n], and in `at` its event, for each that
    leaves its symbol's best n levels other than they were shown. Stops early when the pool is full."""
    for i in range(state[NEXT], len(types)):
        symbol, outcome = symbols[i], outcomes[i]
        rank = 1 << 30
        if outcome != 0 and outcome != _UNKNOWN:
            buy = effect_sides[i] == _BUY
            if not has_room(levels, sides, state, 2 * symbol + (0 if buy else 1)):
                state[NEXT] = i
                return
            rank = _apply(
                types[i], outcome, symbol, buy, events[i, 2], events[i, 3], events[i, 4], events[i, 5],
                effects[i, 1], orders, free, keys, slots, levels, sides, state, dirty,
            )  # fmt: skip
        if rank < n or dirty[symbol]:
            dirty[symbol] = False
            if _show(levels, sides, symbol, n, shown, rows[state[ROWS]]):
                at[state[ROWS]] = i
                state[ROWS] += 1
    state[NEXT] = len(types)
