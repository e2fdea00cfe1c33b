"""The kernel behind the table `orders`: follows every order from its add to its end.

Columns of EVENT and EFFECT come as i64 views; u64 values wrap and are only added, subtracted and compared for
equality. A place (locate, side, price) is counted in an open-addressing table of its own, so that a new order
knows what is ahead of it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EffectFlag, Outcome
from trident_core.jit import njit_entry, njit_inlined, njit_kernel
from trident_core.tables.refs import erase, find, insert

#: One order that lives, or has just ended: times since midnight; `fills` counts executions.
LIFE: Final = np.dtype(
    [
        (name, "<i8")
        for name in (
            "ref", "seq", "ts", "price", "added", "filled", "cancelled", "replaced", "remaining",
            "replaced_from", "replaced_by", "origin", "ahead", "position", "fills", "first_fill_ts",
            "end_ts", "end_seq", "locate", "side", "mpid", "fate",
        )
    ]
)  # fmt: skip

#: What lies at one price: quantity and number of orders; free when the count is 0.
PLACE: Final = np.dtype([(name, "<i8") for name in ("locate", "side", "price", "qty", "count")])

FILLED, CANCELLED, REPLACED, EVICTED, LIVE = (ord(letter) for letter in "FCREL")
_A, _F, _E, _C, _X, _D, _U = (ord(letter) for letter in "AFECXDU")
_APPLIED, _UNKNOWN, _DUPLICATE = int(Outcome.APPLIED), int(Outcome.UNKNOWN_REF), int(Outcome.DUPLICATE_REF)
_REJECTED = int(Outcome.REJECTED)
_LEFT: Final = int(EffectFlag.LEFT)

#: Slots of `state`.
FREE, LIVING, PLACES, ENDED = range(4)
STATE_SLOTS: Final = 4

_K1, _K2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9


@njit_inlined
def _home(locate: int, side: int, price: int, mask: int) -> int:
    mixed = np.uint64(locate * 2 + (side & 1)) * np.uint64(_K1) + np.uint64(price)
    mixed = (mixed ^ (mixed >> np.uint64(32))) * np.uint64(_K2)
    return np.int64((mixed ^ (mixed >> np.uint64(29))) & np.uint64(mask))  # type: ignore[return-value]


@njit_kernel
def place_of(places: NDArray[Any], locate: int, side: int, price: int) -> int:
    """Where the place is, or would be put."""
    mask = len(places) - 1
    at = _home(locate, side, price, mask)
    while places[at].count != 0:
        if places[at].locate == locate and places[at].price == price and places[at].side == side:
            return at
        at = (at + 1) & mask
    return at


@njit_kernel
def leave(places: NDArray[Any], state: NDArray[np.int64], life: Any, qty: int, orders: int) -> None:
    """Take `qty` shares and `orders` orders (0 or 1) from the place of `life`; free it when empty."""
    mask = len(places) - 1
    hole = place_of(places, life.locate, life.side, life.price)
    places[hole].qty -= qty
    places[hole].count -= orders
    if places[hole].count != 0:
        return
    state[PLACES] -= 1
    at = hole
    while True:
        at = (at + 1) & mask
        if places[at].count == 0:
            break
        home = _home(places[at].locate, places[at].side, places[at].price, mask)
        if ((at - home) & mask) >= ((at - hole) & mask):
            places[hole] = places[at]
            places[at].count = 0
            hole = at


@njit_entry
def copy_places(places: NDArray[Any], larger: NDArray[Any]) -> None:
    """Put every place into another table."""
    for at in range(len(places)):
        if places[at].count != 0:
            larger[place_of(larger, places[at].locate, places[at].side, places[at].price)] = places[at]


@njit_kernel
def _end(
    lives: NDArray[Any], free: NDArray[np.int32], state: NDArray[np.int64], keys: Any, slots: Any,
    places: NDArray[Any], slot: int, ts: int, seq: int, fate: int, ended: NDArray[Any],
) -> None:  # fmt: skip
    """The order in `slot` leaves with what it has; its row is written."""
    life = lives[slot]
    left = life.remaining
    life.fate, life.end_ts, life.end_seq = fate, ts, seq
    if fate == CANCELLED:
        life.cancelled += left
    if fate == REPLACED:
        life.replaced = left
    if fate != EVICTED:
        life.remaining = 0
    leave(places, state, life, left, 1)
    erase(keys, slots, life.ref)
    ended[state[ENDED]] = life
    state[ENDED] += 1
    free[state[FREE]] = slot
    state[FREE] += 1
    state[LIVING] -= 1


@njit_kernel
def _begin(
    lives: NDArray[Any], free: NDArray[np.int32], state: NDArray[np.int64], keys: Any, slots: Any,
    places: NDArray[Any], ref: int, locate: int, side: int, price: int, qty: int, mpid: int, ts: int,
    seq: int, replaced_from: int, origin: int,
) -> None:  # fmt: skip
    """A new order joins the tail of its queue."""
    state[FREE] -= 1
    slot = free[state[FREE]]
    state[LIVING] += 1
    life = lives[slot]
    life.ref, life.seq, life.ts, life.price = ref, seq, ts, price
    life.added, life.remaining, life.locate, life.side, life.mpid = qty, qty, locate, side, mpid
    life.filled, life.cancelled, life.replaced, life.fills, life.first_fill_ts = 0, 0, 0, 0, 0
    life.replaced_from, life.replaced_by, life.origin = replaced_from, 0, origin
    life.end_ts, life.end_seq, life.fate = 0, 0, LIVE
    at = place_of(places, locate, side, price)
    if places[at].count == 0:
        state[PLACES] += 1
        places[at].locate, places[at].side, places[at].price, places[at].qty = locate, side, price, 0
    life.ahead, life.position = places[at].qty, places[at].count
    places[at].qty += qty
    places[at].count += 1
    insert(keys, slots, ref, slot)


@njit_entry
def follow(
    types: Any, events: Any, sides: Any, locates: Any, effects: Any, mpids: Any, outcomes: Any, flags: Any,
    lives: NDArray[Any], free: NDArray[np.int32], state: NDArray[np.int64], keys: Any, slots: Any,
    places: NDArray[Any], ended: NDArray[Any],
) -> None:  # fmt: skip
    """Apply one batch. `events` i64[n, 8] and `effects` i64[n, 4] are the records as words; `locates` are the
    tops'. `free` and the tables have room for one more order per event, `ended` for two lives per event."""
    for i in range(len(types)):
        kind, outcome = types[i], outcomes[i]
        if outcome == 0 or outcome == _UNKNOWN:
            continue
        seq, ts, ref, ref2 = events[i, 0], events[i, 1], events[i, 2], events[i, 3]
        if kind == _A or kind == _F:
            if outcome == _REJECTED:
                continue
            if outcome == _DUPLICATE:
                old = find(keys, slots, ref)
                if old >= 0:
                    _end(lives, free, state, keys, slots, places, old, ts, seq, EVICTED, ended)
            _begin(
                lives, free, state, keys, slots, places, ref, locates[i], sides[i], events[i, 4],
                events[i, 5], mpids[i], ts, seq, 0, ref,
            )  # fmt: skip
            continue
        slot = find(keys, slots, ref)
        if slot < 0:
            continue
        life = lives[slot]
        if kind == _E or kind == _C or kind == _X:
            qty = effects[i, 1]
            life.remaining -= qty
            if kind == _X:
                life.cancelled += qty
            else:
                life.filled += qty
                life.fills += 1
                if life.fills == 1:
                    life.first_fill_ts = ts
            leave(places, state, life, qty, 0)
            if flags[i] & _LEFT:
                fate = CANCELLED if kind == _X else FILLED
                _end(lives, free, state, keys, slots, places, slot, ts, seq, fate, ended)
        elif kind == _D:
            _end(lives, free, state, keys, slots, places, slot, ts, seq, CANCELLED, ended)
        elif kind == _U:
            locate, side, mpid, origin = life.locate, life.side, life.mpid, life.origin
            if outcome != _REJECTED:
                life.replaced_by = ref2
            _end(lives, free, state, keys, slots, places, slot, ts, seq, REPLACED, ended)
            old = find(keys, slots, ref2)
            if old >= 0:
                _end(lives, free, state, keys, slots, places, old, ts, seq, EVICTED, ended)
            if outcome != _REJECTED:
                _begin(
                    lives, free, state, keys, slots, places, ref2, locate, side, events[i, 4], events[i, 5],
                    mpid, ts, seq, ref, origin,
                )  # fmt: skip
