"""Kernels of one side: which levels it has, and which is the best.

The levels of 64 ticks around the touch stand in a window: a level is found by one multiplication, and the
best one, or the next best, by the highest bit of a word. All others (far from the touch, or between the
ticks) stand in a sorted array (trident_book.outside). The window lies where `place_window` laid it last;
that, and the tick, decide about speed only: a key is inside exactly if it is one of the window's 64.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book import outside
from trident_book.machine import highest_bit, lowest_bit
from trident_book.records import LEVEL_END, LEVEL_FREE, WINDOW
from trident_book.unsigned import u
from trident_core.jit import njit_inlined, njit_kernel

_0: Final = np.uint64(0)
_1: Final = np.uint64(1)
_63: Final = np.uint64(63)
_64: Final = np.uint64(WINDOW)

#: The bit on which the best level is laid: most orders stand behind the best, some improve on it.
_BEST_BIT: Final = 47
#: The tick of a side of a single level: a cent in prices of 4 decimals.
_TICK: Final = 100
_TICK_MAX: Final = 1 << 32
_KEY_MIN, _KEY_MAX = -(1 << 63), (1 << 63) - 1
#: Levels looked at to find the tick.
_SAMPLE: Final = 8
#: Levels made outside before the window is placed anew; doubled each time that changes nothing.
_PATIENCE: Final = 32
_PATIENCE_MAX: Final = 1 << 24


@njit_inlined
def key_of(price: Any, side_at: Any) -> Any:
    """Ascending keys run from the worst to the best level: bids by price, asks by its complement."""
    return price ^ -np.int64(side_at & np.uint32(1))


@njit_inlined
def bit_of(side: Any, key: Any) -> Any:
    """Which bit of the window a key has; 64 and more: none.

    Exact division (Granlund, Montgomery 1994): times the inverse of the tick's odd part, rotated by its twos,
    a distance of k ticks gives k, and any other distance more than 2^64 / tick.
    """
    product = np.uint64(key - side.base) * side.inverse
    twos = np.uint64(side.twos)
    return product >> twos | product << ((_64 - twos) & _63)


@njit_inlined
def level_of(st: Any, side_at: Any, key: Any) -> Any:
    """The slot of a key's level, 0 if it has none."""
    side = st.sides[side_at]
    bit = bit_of(side, key)
    if bit < _64:
        slot = st.window[np.uint64(side_at) * _64 + bit]
        return slot if side.bits >> bit & _1 else np.uint32(0)
    if side.n == 0:
        return np.uint32(0)
    return outside.level_at(st, side, outside.place(st, side, key), key)


@njit_inlined
def inside_hint(st: Any, side_at: Any, key: Any) -> Any:
    """The slot that the window has for a key, be it in use or not; of a wrong level for a key outside."""
    bit = bit_of(st.sides[side_at], key) & _63
    return st.window[np.uint64(side_at) * _64 + bit]


@njit_inlined
def best_of(st: Any, side_at: Any) -> Any:
    """The slot of the best level by what the side has, 0 for none."""
    side = st.sides[side_at]
    if side.n == 0:
        if side.bits == _0:
            return np.uint32(0)
        return st.window[np.uint64(side_at) * _64 + highest_bit(side.bits)]
    end = np.int64(side.start) + np.int64(side.n) - 1
    if side.bits > _0:
        bit = highest_bit(side.bits)
        if side.base + np.int64(bit * side.tick) > st.keys[u(end)]:
            return st.window[np.uint64(side_at) * _64 + bit]
    return st.slots[u(end)]


@njit_inlined
def insert(st: Any, side_at: Any, key: Any, slot: Any) -> None:
    """Make `slot` the level of a key that has none."""
    side = st.sides[side_at]
    bit = bit_of(side, key)
    if bit < _64 and side.tick > _0:
        st.window[np.uint64(side_at) * _64 + bit] = slot
        side.bits |= _1 << bit
    else:
        insert_outside(st, side_at, key, slot)
    best = st.levels[side.best]
    if side.best == 0 or key > key_of(best.price, side_at):
        side.best = slot
        side.stale = 1


@njit_inlined
def erase(st: Any, side_at: Any, key: Any, slot: Any) -> None:
    """Take the level of a key out of the side."""
    side = st.sides[side_at]
    bit = bit_of(side, key)
    if bit < _64:
        side.bits &= ~(_1 << bit)
    else:
        outside.erase(st, side, key)
    if side.best == slot:
        side.best = best_of(st, side_at)


@njit_inlined
def next_level(st: Any, side_at: Any, bits: Any, n: Any) -> Any:
    """(slot, bits, n) of the best level of `bits` of the window and the first `n` outside; slot 0: none."""
    side = st.sides[side_at]
    if bits > _0:
        bit = highest_bit(bits)
        if n == 0 or side.base + np.int64(bit * side.tick) > st.keys[u(np.int64(side.start) + n - 1)]:
            return st.window[np.uint64(side_at) * _64 + bit], bits & ~(_1 << bit), n
    if n == 0:
        return np.uint32(0), bits, n
    return st.slots[u(np.int64(side.start) + n - 1)], bits, n - 1


# --- placing the window -------------------------------------------------------------------------------------


@njit_kernel
def insert_outside(st: Any, side_at: Any, key: Any, slot: Any) -> None:
    """Where the window has no place: outside, or by placing the window where it has one."""
    side = st.sides[side_at]
    if side.bits == _0 and side.n == 0:
        if side.tick == _0:
            side.tick = np.uint64(_TICK) if key_of(key, side_at) % _TICK == 0 else _1
            side.patience = _PATIENCE
        lay(side, key, side.tick)
        bit = bit_of(side, key)
        st.window[np.uint64(side_at) * _64 + bit] = slot
        side.bits = _1 << bit
        return
    outside.insert(st, side, key, slot)
    side.misses += 1
    end = side.base + np.int64(_63 * side.tick)
    better = key > end and np.uint64(key - end) % side.tick == _0
    if side.bits == _0 or better or side.misses >= side.patience:
        place_window(st, side_at)


@njit_inlined
def lay(side: Any, key: Any, tick: Any) -> None:
    """Lay an empty window such that `key` has a bit, _BEST_BIT where the numbers allow."""
    step = np.int64(tick)
    below = _BEST_BIT
    if key > _KEY_MAX - (WINDOW - 1 - _BEST_BIT) * step:
        below = WINDOW - 1
    elif key < _KEY_MIN + _BEST_BIT * step:
        below = 0
    side.base = key - below * step
    side.tick = tick
    twos = lowest_bit(tick)
    odd = tick >> twos
    inverse = (odd * np.uint64(3)) ^ np.uint64(2)  # right in 5 bits, then in 10, 20, 40, 80 (Newton)
    for _ in range(4):
        inverse *= np.uint64(2) - odd * inverse
    side.inverse = inverse
    side.twos = np.uint32(twos)
    side.bits = _0
    side.misses = 0


@njit_inlined
def common_divisor(a: Any, b: Any) -> Any:
    while b > _0:
        a, b = b, a % b
    return a


@njit_inlined
def tick_of(st: Any, side: Any) -> Any:
    """The tick of the best levels, which all stand outside.

    The present one stays if it fits most of them (a single price between the ticks changes nothing) and not
    too few are near enough; else it is what divides all their distances.
    """
    end = np.int64(side.start) + np.int64(side.n) - 1
    count: Any = min(np.int64(side.n) - 1, _SAMPLE)
    divisor, fitting = _0, 0
    for k in range(count):
        distance = np.uint64(st.keys[u(end - k)] - st.keys[u(end - k - 1)])
        divisor = common_divisor(distance, divisor)
        fitting += distance % side.tick == _0
    reach = np.uint64(st.keys[u(end)] - st.keys[u(end - count)])
    near = reach // side.tick < _64
    if divisor == _0 or (2 * fitting >= count and (near or divisor < side.tick)):
        return side.tick
    return min(divisor, np.uint64(_TICK_MAX))


@njit_kernel
def place_window(st: Any, side_at: Any) -> None:
    """Lay the window around the best level, in the tick of the best levels."""
    side = st.sides[side_at]
    old_base, old_tick = side.base, side.tick
    window = np.uint64(side_at) * _64
    most = np.int64(side.n) + WINDOW
    if most > np.int64(side.cap):
        outside.move(st, side, outside.chunk_for(most))
    while side.bits > _0:
        bit = lowest_bit(side.bits)
        side.bits &= side.bits - _1
        outside.insert(st, side, side.base + np.int64(bit * side.tick), st.window[window + bit])
    tick = tick_of(st, side)
    end = np.int64(side.start) + np.int64(side.n) - 1
    anchor = end
    # The best level may stand between the ticks: the first pair of neighbours on ticks says where these are.
    while anchor > max(np.int64(side.start), end - _SAMPLE):
        if np.uint64(st.keys[u(anchor)] - st.keys[u(anchor - 1)]) % tick == _0:
            break
        anchor -= 1
    lay(side, st.keys[u(anchor)], tick)
    at = end
    while at >= np.int64(side.start) and st.keys[u(at)] >= side.base:
        at -= 1
    kept = at + 1
    for k in range(kept, end + 1):
        key, slot = st.keys[u(k)], st.slots[u(k)]
        bit = bit_of(side, key)
        if bit < _64:
            st.window[window + bit] = slot
            side.bits |= _1 << bit
        else:
            st.keys[u(kept)], st.slots[u(kept)] = key, slot
            kept += 1
    side.n = kept - np.int64(side.start)
    cap = outside.chunk_for(2 * np.int64(side.n))
    if cap < np.int64(side.cap):
        outside.move(st, side, cap)
    moved = abs(side.base - old_base) >= 8 * np.int64(tick) or tick != old_tick
    side.patience = _PATIENCE if moved else min(2 * np.int64(side.patience), _PATIENCE_MAX)


# --- levels -------------------------------------------------------------------------------------------------


@njit_inlined
def new_level(st: Any, side_at: Any, price: Any) -> Any:
    """An empty level of a price, not yet in its side."""
    slot = st.g[LEVEL_FREE]
    if slot > 0:
        st.g[LEVEL_FREE] = np.int64(st.levels[u(slot)].next)
    else:
        slot = st.g[LEVEL_END]
        st.g[LEVEL_END] = slot + 1
    level = st.levels[u(slot)]
    level.price = price
    level.qty = np.uint64(0)
    level.head = level.tail = level.count = 0
    level.side = side_at
    return np.uint32(slot)


@njit_inlined
def free_level(st: Any, slot: Any) -> None:
    st.levels[u(slot)].next = st.g[LEVEL_FREE]
    st.g[LEVEL_FREE] = np.int64(slot)
