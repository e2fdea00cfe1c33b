"""The memory of a numba market: pools that double when they are full (trident_book.pools)."""

from __future__ import annotations

import secrets
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_book import index, records
from trident_book.matching import numba_state as s
from trident_book.matching.numba_checks import STPS
from trident_book.matching.numba_memory import Block
from trident_book.pools import zeros
from trident_core.contracts.matching import LOCATE_MAX, Allocation, MarketRules
from trident_core.jit import njit_entry

# First sizes, of which memory takes only what is used (a page at a time).
_ORDERS: Final = 1 << 12
_LEVELS: Final = 1 << 10
_SYMBOLS: Final = 1 << 8
_STOPS: Final = 1 << 4
_OWNERS: Final = 1 << 8
_KEYS: Final = 4 * records.CHUNK_SPARE * records.CHUNK_ROOM
_ALLOCATIONS: Final = {
    Allocation.FIFO: s.FIFO, Allocation.PRO_RATA: s.PRO_RATA, Allocation.SIZE_TIME: s.SIZE_TIME,
}  # fmt: skip


def make_state(rules: MarketRules) -> Block:
    """A market without symbols. Slot 0 of every pool is null; symbol 0 is what a new one is like."""
    memory = zeros(s.STATE.size // 8, np.uint64)
    st = Block(s.STATE, memory)
    g = st.g
    g[s.ORDER_END] = g[s.SYMBOL_END] = g[s.STOPS_END] = 1
    g[s.REF], g[s.MATCH_NO] = rules.first_ref, rules.first_match
    g[s.ALLOCATION] = _ALLOCATIONS[rules.allocation]
    g[s.STP] = max(int(STPS[int(rules.stp)]), 1) - 1
    g[s.PROTECTION], g[s.QTY_MAX], g[s.ORDERS_MAX] = rules.protection, rules.qty_max, rules.max_orders
    g[s.TICKS] = len(rules.ticks)
    g[s.TICK_AT : s.TICK_AT + 2 * len(rules.ticks)] = np.array(rules.ticks, np.int64).ravel()
    g[s.OWNER_SEED] = secrets.randbits(32)
    st.symbols = zeros(_SYMBOLS, s.SYMBOL_SLOT)
    st.symbols[0]["state"] = ord(rules.state)
    st.symbols[0]["special"] = 0 if rules.state == "T" else s.SPECIAL_STATE
    st.orders, st.more = zeros(_ORDERS, s.ORDER_SLOT), zeros(_ORDERS, s.MORE_SLOT)
    st.near = zeros(LOCATE_MAX + 1, np.uint32)
    st.owners, st.agenda = zeros(_OWNERS, s.OWNER_SLOT), zeros(1, np.uint32)
    st.ids.g[records.INDEX_BITS] = index.BITS_MIN
    st.ids.g[records.SEED] = secrets.randbits(63)
    st.ids.refs = zeros(index.WORDS << index.BITS_MIN, np.uint32)
    st.ids.passed = zeros(1 << index.BITS_MIN, np.uint32)
    st.ids.orders = st.orders.view(s.KEYED)
    _make_ladder(st.book, 2 * _SYMBOLS)
    _make_ladder(st.stops, 4 * _STOPS)
    return st


def _make_ladder(ladder: Block, sides: int) -> None:
    ladder.g[records.LEVEL_END] = 1
    ladder.g[records.CHUNK_END] = records.CHUNK_MIN
    ladder.levels = zeros(_LEVELS, s.LEVEL_SLOT)
    ladder.sides = zeros(sides, records.SIDE)
    ladder.window = zeros(sides * records.WINDOW, np.uint32)
    ladder.keys, ladder.slots = zeros(_KEYS, np.int64), zeros(_KEYS, np.uint32)


# --- growth -------------------------------------------------------------------------------------------------


def make_room(st: Block) -> None:
    """Every pool that is nearly full becomes longer: what `numba_room.room` asks for is there then."""
    g = st.g
    if g[s.ORDER_END] == len(st.orders):
        st.orders = _longer(st.orders, len(st.orders))
        st.ids.orders = st.orders.view(s.KEYED)
        more, used = zeros(len(st.orders), s.MORE_SLOT), int(g[s.MORE_END])
        # What is behind `used` was never written: not to be read either.
        more.view(np.uint8)[: used * more.itemsize] = st.more[:used].view(np.uint8)
        st.more = more
    if g[s.SYMBOL_END] == len(st.symbols):
        st.symbols = _longer(st.symbols, len(st.symbols))
        _add_sides(st.book)
    if 4 * g[s.STOPS_END] == len(st.stops.sides):
        _add_sides(st.stops)
    if 2 * g[s.OWNERS_USED] >= len(st.owners):
        st.owners = _owners_anew(st)
    for ladder in (st.book, st.stops):
        _make_ladder_longer(ladder)
    _make_index_larger(st)


def make_agenda(st: Block, wanted: int) -> None:
    """Room for so many orders in the agenda."""
    if len(st.agenda) < wanted:
        st.agenda = zeros(max(wanted, 2 * len(st.agenda)), np.uint32)


def _add_sides(ladder: Block) -> None:
    ladder.sides = _longer(ladder.sides, len(ladder.sides))
    ladder.window = _longer(ladder.window, len(ladder.window))


def _make_ladder_longer(ladder: Block) -> None:
    g = ladder.g
    if len(ladder.levels) - g[records.LEVEL_END] < 2:
        ladder.levels = _longer(ladder.levels, len(ladder.levels))
    spare = 2 * records.CHUNK_SPARE * max(records.CHUNK_ROOM, int(g[records.CHUNK_MAX]))
    if len(ladder.keys) - g[records.CHUNK_END] < spare:
        more = max(len(ladder.keys), 2 * spare)
        ladder.keys, ladder.slots = _longer(ladder.keys, more), _longer(ladder.slots, more)


def _owners_anew(st: Block) -> NDArray[Any]:
    """The table of owners without those that have no order left, at most a quarter full."""
    kept = st.owners[(st.owners["used"] > 0) & (st.owners["head"] > 0)]
    size = _OWNERS
    while size < 4 * len(kept):
        size *= 2
    table = zeros(size, s.OWNER_SLOT)
    keys = (kept["owner"].astype(np.uint64) ^ np.uint64(st.g[s.OWNER_SEED])) * index.MIX_1
    places = (keys >> np.uint64(32)) & np.uint64(size - 1)
    for entry, place in zip(kept, places.tolist(), strict=True):
        while table[place]["used"]:
            place = (place + 1) & (size - 1)
        table[place] = entry
    st.g[s.OWNERS_USED] = len(kept)
    return table


@njit_entry
def rehash(old: Any, memory: Any) -> None:
    """Enter all entries of the table `old` into the empty one."""
    index.rehash(old, s.state_at(memory).ids)


def _make_index_larger(st: Block) -> None:
    ids = st.ids
    if 2 * ids.g[records.LIVE] >= index.BUCKET * len(ids.passed):
        ids.g[records.INDEX_BITS] += 1
        old = ids.refs
        ids.refs, ids.passed = zeros(2 * len(old), np.uint32), zeros(2 * len(ids.passed), np.uint32)
        rehash(old, st.memory)


def _longer(pool: NDArray[Any], more: int) -> NDArray[Any]:
    longer = zeros(len(pool) + more, pool.dtype)
    longer.view(np.uint8)[: pool.nbytes] = pool.view(np.uint8)  # numpy copies padded records field by field
    return longer
