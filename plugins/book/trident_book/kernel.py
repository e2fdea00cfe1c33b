"""The kernel of the numba book: apply a batch of events. The rules are those of `reference.py`.

An output that is not wanted is one row that is written over and over: cheaper than asking each time.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book import records
from trident_book.ahead import BLOCK, first_step, fourth_step, hint_of, second_step, third_step
from trident_book.index import BUCKET, find, find_hinted
from trident_book.queues import evict, has_room, join, leave, note
from trident_book.records import (
    CHUNK_END,
    CHUNK_MAX,
    CHUNK_ROOM,
    CHUNK_SPARE,
    FAR_LOCATES,
    LEVEL_END,
    LEVEL_FREE,
    LIVE,
    NEAR,
    ORDER_END,
    ORDER_FREE,
    SYMBOL_END,
)
from trident_book.sides import key_of, level_of
from trident_book.unsigned import u
from trident_core.contracts import TradingState
from trident_core.dtypes import EffectFlag, Outcome, TopFlag
from trident_core.jit import njit_entry, njit_inlined, njit_kernel

_F, _E = ord("F"), ord("E")
_BUY, _SELL = ord("B"), ord("S")
_TRADING: Final = int(TradingState.TRADING)
_STATES: Final = np.zeros(256, np.uint8)  # by the letter of an H
_STATES[list(TradingState)] = list(TradingState)
_NONE: Final = int(Outcome.NONE)
_APPLIED: Final = int(Outcome.APPLIED)
_UNKNOWN: Final = int(Outcome.UNKNOWN_REF)
_DUPLICATE: Final = int(Outcome.DUPLICATE_REF)
_OVER: Final = int(Outcome.OVER_EXECUTION)
_REJECTED: Final = int(Outcome.REJECTED)
_NOT_AT_HEAD: Final = int(EffectFlag.NOT_AT_HEAD)
_LEFT: Final = int(EffectFlag.LEFT)
_MISMATCH: Final = int(EffectFlag.LOCATE_MISMATCH)
_CHANGED: Final = int(TopFlag.CHANGED)
_CROSSED: Final = int(TopFlag.CROSSED)
_LOCKED: Final = int(TopFlag.LOCKED)
_0: Final = np.uint64(0)
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)


# --- symbols ------------------------------------------------------------------------------------------------


@njit_kernel
def find_far(st: Any, locate: Any) -> Any:
    """(position, symbol) of a locate of NEAR and above; symbol 0: none, and the position is where it goes."""
    mask = np.uint64(len(st.far) - 1)
    position = (np.uint64(locate) * _MIX) >> np.uint64(32) & mask
    while True:
        entry = st.far[position]
        if entry == _0:
            return position, np.uint32(0)
        if entry >> np.uint64(32) == np.uint64(locate):
            return position, np.uint32(entry & np.uint64(0xFFFF_FFFF))
        position = (position + np.uint64(1)) & mask


@njit_entry
def rehash_far(old: Any, new: Any) -> None:
    """Enter all entries of `old` into the empty table `new`."""
    mask = np.uint64(len(new) - 1)
    for entry in old:
        if entry != _0:
            position = ((entry >> np.uint64(32)) * _MIX) >> np.uint64(32) & mask
            while new[position] != _0:
                position = (position + np.uint64(1)) & mask
            new[position] = entry


@njit_entry
def find_symbol(st: Any, locate: Any) -> Any:
    """The symbol of a locate, 0 if it has none."""
    if locate < NEAR:
        return st.near[locate]
    return find_far(st, locate)[1]


@njit_kernel
def new_symbol(st: Any, locate: Any) -> Any:
    """The symbol of a locate, made if it has none."""
    symbol = np.uint32(st.g[SYMBOL_END])
    if locate < NEAR:
        st.near[locate] = symbol
    else:
        position, known = find_far(st, locate)
        if known > 0:
            return known
        st.far[position] = np.uint64(locate) << np.uint64(32) | np.uint64(symbol)
        st.g[FAR_LOCATES] += 1
    st.g[SYMBOL_END] += 1
    st.tops[symbol].locate = locate
    return symbol


@njit_inlined
def symbol_of(st: Any, locate: Any) -> Any:
    if locate < NEAR and st.near[locate] > 0:
        return st.near[locate]
    return new_symbol(st, locate)


# --- rules --------------------------------------------------------------------------------------------------
# Each gets the event, and the record in which to say what it did; it returns the event's symbol.


@njit_inlined
def say(
    effect: Any, price: Any, qty: Any, remaining: Any, mpid: Any, side: Any, outcome: Any, flags: Any
) -> None:
    effect.price, effect.qty, effect.remaining, effect.mpid = price, qty, remaining, mpid
    effect.side, effect.outcome, effect.flags = side, outcome, flags


@njit_inlined
def say_nothing(effect: Any, outcome: Any) -> None:
    say(effect, 0, _0, _0, 0, 0, outcome, 0)


@njit_inlined
def add(st: Any, event: Any, effect: Any) -> Any:
    """A, F."""
    symbol = symbol_of(st, event.locate)
    side_at = np.uint32(2) * symbol + np.uint32(event.side == _SELL)
    key = key_of(event.price, side_at)
    level = level_of(st, side_at, key)
    if not has_room(st, level, event.qty) or (event.side != _BUY and event.side != _SELL):
        note(st, records.REJECTED_ADD, event.seq)
        say_nothing(effect, _REJECTED)
        return symbol
    outcome = _APPLIED
    stale = find(st, event.ref)
    if stale > 0:
        outcome = _DUPLICATE
        evict(st, stale, event.seq)
        level = level_of(st, side_at, key)
    mpid = np.uint32(event.aux & np.uint64(0xFFFF_FFFF)) if event.type == _F else np.uint32(0)
    join(st, side_at, level, event.ref, event.price, event.qty, event.ts, mpid)
    say(effect, event.price, event.qty, event.qty, mpid, event.side, outcome, 0)
    return symbol


@njit_inlined
def unknown(st: Any, event: Any, effect: Any) -> Any:
    note(st, records.UNKNOWN_REF, event.seq)
    say_nothing(effect, _UNKNOWN)
    return symbol_of(st, event.locate)


@njit_inlined
def check_locate(st: Any, event: Any, symbol: Any) -> Any:
    """The order's symbol stands; a message that names another is counted."""
    if st.tops[symbol].locate == event.locate:
        return 0
    symbol_of(st, event.locate)
    note(st, records.LOCATE_MISMATCH, event.seq)
    return _MISMATCH


@njit_inlined
def letter_of(side_at: Any) -> Any:
    return _SELL if side_at & np.uint32(1) else _BUY


@njit_inlined
def reduce(st: Any, event: Any, effect: Any, hint: Any) -> Any:
    """E, C, X."""
    slot = find_hinted(st, event.ref, st.order_hints[hint])
    if slot == 0:
        return unknown(st, event, effect)
    order = st.orders[slot]
    side_at, taken, outcome = order.side, event.qty, _APPLIED
    symbol = side_at >> np.uint32(1)
    flags = check_locate(st, event, symbol)
    if event.type == _E and order.prev > 0:
        note(st, records.NOT_AT_HEAD, event.seq)
        flags |= _NOT_AT_HEAD
    if taken > order.qty:
        note(st, records.OVER_EXECUTION, event.seq)
        outcome, taken = _OVER, order.qty
    remaining = order.qty - taken
    if remaining == _0:
        flags |= _LEFT
        leave(st, slot)
    else:
        order.qty = remaining
        st.levels[order.level].qty -= taken
        side = st.sides[side_at]
        side.stale |= np.uint32(side.best == order.level)
    say(effect, order.price, taken, remaining, order.mpid, letter_of(side_at), outcome, flags)
    return symbol


@njit_inlined
def delete(st: Any, event: Any, effect: Any, hint: Any) -> Any:
    """D."""
    slot = find_hinted(st, event.ref, st.order_hints[hint])
    if slot == 0:
        return unknown(st, event, effect)
    order = st.orders[slot]
    side_at, qty = order.side, order.qty
    symbol = side_at >> np.uint32(1)
    flags = check_locate(st, event, symbol) | _LEFT
    leave(st, slot)
    say(effect, order.price, qty, _0, order.mpid, letter_of(side_at), _APPLIED, flags)
    return symbol


@njit_inlined
def replace(st: Any, event: Any, effect: Any, hint: Any) -> Any:
    """U."""
    slot = find_hinted(st, event.ref, st.order_hints[hint])
    if slot == 0:
        return unknown(st, event, effect)
    order = st.orders[slot]
    side_at, mpid, price, qty = order.side, order.mpid, order.price, order.qty
    symbol = side_at >> np.uint32(1)
    flags = check_locate(st, event, symbol) | _LEFT
    leave(st, slot)
    outcome, remaining = _APPLIED, event.qty
    stale = find(st, event.ref2)
    if stale > 0:
        outcome = _DUPLICATE
        evict(st, stale, event.seq)
    level = level_of(st, side_at, key_of(event.price, side_at))
    if has_room(st, level, event.qty):
        join(st, side_at, level, event.ref2, event.price, event.qty, event.ts, mpid)
    else:
        note(st, records.REJECTED_ADD, event.seq)
        outcome, remaining = _REJECTED, _0
    say(effect, price, qty, remaining, mpid, letter_of(side_at), outcome, flags)
    return symbol


@njit_inlined
def trading_action(st: Any, event: Any, effect: Any) -> Any:
    """H."""
    symbol = symbol_of(st, event.locate)
    st.tops[symbol].state = _STATES[event.aux & np.uint64(0xFF)]
    say_nothing(effect, _NONE)
    return symbol


# --- the touch ----------------------------------------------------------------------------------------------


@njit_inlined
def show(st: Any, top: Any, row: Any, symbol: Any, seq: Any) -> None:
    """Look the touch up where it may have changed, and write the event's TOP. Null slots are all zeros."""
    bids = st.sides[np.uint32(2) * symbol]
    asks = st.sides[np.uint32(2) * symbol + np.uint32(1)]
    row.locate, row.state = top.locate, top.state
    if bids.stale == 0 and asks.stale == 0:
        row.bid_price, row.bid_qty, row.bid_count = top.bid_price, top.bid_qty, top.bid_count
        row.ask_price, row.ask_qty, row.ask_count = top.ask_price, top.ask_qty, top.ask_count
        row.flags = top.flags
        return
    # From here on each value is stored twice from its register: a copy read back at once would have to wait.
    bid, ask = st.levels[bids.best], st.levels[asks.best]
    bids.stale = asks.stale = 0
    bid_price, bid_qty, bid_count = bid.price, bid.qty, bid.count
    ask_price, ask_qty, ask_count = ask.price, ask.qty, ask.count
    same = (
        (top.bid_price == bid_price) & (top.bid_qty == bid_qty) & (top.bid_count == bid_count)
        & (top.ask_price == ask_price) & (top.ask_qty == ask_qty) & (top.ask_count == ask_count)
    )  # fmt: skip
    both = (bid_count > 0) & (ask_count > 0)
    shape = (_CROSSED if bid_price > ask_price else _LOCKED if bid_price == ask_price else 0) if both else 0
    if shape == _CROSSED and top.flags != _CROSSED and top.state == _TRADING:
        note(st, records.CROSSED, seq)
    top.flags = shape
    top.bid_price, top.bid_qty, top.bid_count = bid_price, bid_qty, bid_count
    top.ask_price, top.ask_qty, top.ask_count = ask_price, ask_qty, ask_count
    row.bid_price, row.bid_qty, row.bid_count = bid_price, bid_qty, bid_count
    row.ask_price, row.ask_qty, row.ask_count = ask_price, ask_qty, ask_count
    row.flags = shape if same else shape | _CHANGED


# --- the loop -----------------------------------------------------------------------------------------------


@njit_kernel
def room(st: Any) -> Any:
    """How many events are sure to find room in all pools: each takes at most one place in each.

    Of chunks an event makes at most two by growing, one by placing a window and two by shrinking. Let m be
    the largest size so far: an event puts at most 65 levels outside, so m / 130 events leave every side
    within 2m, and take at most 8m entries each.
    """
    g = st.g
    largest = max(CHUNK_ROOM, g[CHUNK_MAX])
    chunks = min(largest // 130, (len(st.keys) - g[CHUNK_END]) // (CHUNK_SPARE * largest))
    orders = len(st.orders) - g[ORDER_END] + (g[ORDER_FREE] > 0)
    levels = len(st.levels) - g[LEVEL_END] + (g[LEVEL_FREE] > 0)
    symbols = len(st.tops) - g[SYMBOL_END]
    far = len(st.far) // 2 - g[FAR_LOCATES]
    index = len(st.passed) * (BUCKET // 2) - g[LIVE]
    return min(min(orders, levels), min(min(symbols, far), min(index, chunks)))


@njit_entry
def apply(st: Any, events: Any, tops: Any, effects: Any, top_step: Any, effect_step: Any, start: Any) -> Any:
    """Apply events from `start` on until the end, or until a pool needs room: where it stopped.

    Row i of an output is i times its step: 1, or 0 for one that is not wanted.
    """
    n = len(events)
    i = sure = start
    far_apart = st.g[ORDER_END] + st.g[LEVEL_END] >= st.g[records.AHEAD_FROM] and n - start > BLOCK
    first = second = third = fourth = start if far_apart else n
    while i < n:
        if i == sure:
            sure = min(n, i + room(st))
            if i == sure:
                return i
        stop = min(sure, i + BLOCK)
        while first < min(n, stop + 3 * BLOCK):
            first_step(st, events[u(first)], hint_of(first))
            first += 1
        while second < min(n, stop + 2 * BLOCK):
            second_step(st, events[u(second)], hint_of(second))
            second += 1
        while third < min(n, stop + BLOCK):
            third_step(st, events[u(third)], hint_of(third))
            third += 1
        while fourth < stop:
            fourth_step(st, events[u(fourth)], hint_of(fourth))
            fourth += 1
        while i < stop:
            event = events[u(i)]
            effect = effects[u(i * effect_step)]
            rule = records.RULES[event.type]
            if rule == records.ADD:
                symbol = add(st, event, effect)
            elif rule == records.DELETE:
                symbol = delete(st, event, effect, hint_of(i))
            elif rule == records.REDUCE:
                symbol = reduce(st, event, effect, hint_of(i))
            elif rule == records.REPLACE:
                symbol = replace(st, event, effect, hint_of(i))
            elif rule == records.ACTION:
                symbol = trading_action(st, event, effect)
            else:
                symbol = symbol_of(st, event.locate)
                say_nothing(effect, _NONE)
            top = st.tops[symbol]
            top.seq, top.ts = event.seq, event.ts
            row = tops[u(i * top_step)]
            row.seq, row.ts = event.seq, event.ts
            show(st, top, row, symbol, event.seq)
            i += 1
    return n
