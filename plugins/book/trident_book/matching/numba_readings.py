"""What can be read of a numba market: levels, orders, and the rows of its digests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_book.arrays import ORDER_WORDS
from trident_book.matching import numba_state as s
from trident_book.matching.numba_memory import Block
from trident_book.matching.numba_walk import first_level, next_order
from trident_book.sides import next_level
from trident_core.dtypes import DIGEST_ROW, LEVEL, ORDER, Levels, Orders
from trident_core.jit import njit_entry
from trident_core.orders import MATCH_ROW, MATCH_SYMBOL

_BUY, _SELL = ord("B"), ord("S")


@njit_entry
def _read_levels(memory: Any, side_at: Any, out: Any) -> Any:
    """The best displayed levels, as many as `out` has room for; how many there are of these."""
    st = s.state_at(memory)
    side_at = np.uint32(side_at)
    bits, n = st.book.sides[side_at].bits, np.int64(st.book.sides[side_at].n)
    found: Any = np.int64(0)
    while found < len(out):
        slot, bits, n = next_level(st.book, side_at, bits, n)
        if slot == 0:
            break
        level = st.book.levels[slot]
        if level.displayed > 0:
            out[found].price, out[found].qty, out[found].count = level.price, level.qty, level.displayed
            found += 1
    return found


@njit_entry
def _count(memory: Any, side_at: Any) -> Any:
    """(levels, orders) of a side, displayed or not."""
    st = s.state_at(memory)
    side_at = np.uint32(side_at)
    bits, n = st.book.sides[side_at].bits, np.int64(st.book.sides[side_at].n)
    levels: Any = np.int64(0)
    orders: Any = np.int64(0)
    while True:
        slot, bits, n = next_level(st.book, side_at, bits, n)
        if slot == 0:
            return levels, orders
        levels += 1
        orders += np.int64(st.book.levels[slot].count)


@njit_entry
def _read_slots(memory: Any, side_at: Any, out: Any) -> None:
    """All orders of a side in priority."""
    st = s.state_at(memory)
    side_at = np.uint32(side_at)
    level, bits, n = first_level(st, side_at)
    at, level, bits, n = next_order(st, side_at, np.uint32(0), level, bits, n)
    k = 0
    while at > 0:
        out[k] = at
        k += 1
        at, level, bits, n = next_order(st, side_at, at, level, bits, n)


def read_touch(st: Block, side_at: int) -> tuple[int, int, int]:
    """Price, quantity and orders of the best displayed level; zeros if there is none."""
    out = np.zeros(1, LEVEL)
    _read_levels(st.memory, side_at, out)
    return int(out[0]["price"]), int(out[0]["qty"]), int(out[0]["count"])


def levels_of(st: Block, side_at: int, n: int) -> Levels:
    """LEVEL[k] of a side; n = 0 means all."""
    there = int(_count(st.memory, side_at)[0])
    out = np.zeros(min(n or there, there), LEVEL)
    return out[: int(_read_levels(st.memory, side_at, out))] if len(out) else out


def _slots(st: Block, side_at: int) -> NDArray[np.uint32]:
    out = np.zeros(int(_count(st.memory, side_at)[1]), np.uint32)
    if len(out):
        _read_slots(st.memory, side_at, out)
    return out


def _displayed(st: Block, symbol: int) -> NDArray[Any]:
    """The order slots of what is displayed, bids, then asks."""
    chosen = st.orders[np.concatenate([_slots(st, 2 * symbol), _slots(st, 2 * symbol + 1)])]
    displayed: NDArray[Any] = chosen[chosen["shown"] > 0]
    return displayed


def orders_of(st: Block, symbol: int) -> Orders:
    """ORDER[k]."""
    chosen = _displayed(st, symbol)
    out = np.zeros(len(chosen), ORDER_WORDS)
    for name in ("ref", "price", "ts", "mpid"):
        out[name] = chosen[name]
    out["qty"], out["locate"] = chosen["shown"], st.symbols[symbol]["locate"]
    out["side"] = _letters(chosen)
    return out.view(ORDER)


def _letters(orders: NDArray[Any]) -> NDArray[Any]:
    return np.where(orders["side"] & 1, _SELL, _BUY)


def digest_rows(st: Block, symbol: int) -> NDArray[Any]:
    """DIGEST_ROW[k] of the displayed orders."""
    chosen = _displayed(st, symbol)
    rows = np.zeros(len(chosen), DIGEST_ROW)
    rows["locate"], rows["side"] = st.symbols[symbol]["locate"], _letters(chosen)
    rows["price"], rows["ref"], rows["qty"] = chosen["price"], chosen["ref"], chosen["shown"]
    return rows


def match_rows(st: Block, symbol: int) -> NDArray[Any]:
    """MATCH_ROW[k] of a symbol (MATCH-90)."""
    both = np.concatenate([_slots(st, 2 * symbol), _slots(st, 2 * symbol + 1)])
    hidden = st.orders["flags"][both] & s.HIDDEN > 0
    parts = [("F", both[~hidden]), ("K", both[hidden])]
    if st.symbols[symbol]["wait_count"] or st.symbols[symbol]["stop_count"]:
        used = st.orders[: int(st.g[s.ORDER_END])]
        mine = np.flatnonzero((used["side"] >> 1 == symbol) & (used["flags"] & s.LISTED > 0))
        mine = mine[np.argsort(used["ref"][mine])]
        parts += [("W", mine[used["flags"][mine] & s.WAITS > 0])]
        parts += [("S", mine[used["flags"][mine] & s.STOP > 0])]
    found = []
    for place, slots in parts:
        chosen, rows = st.orders[slots], np.zeros(len(slots), MATCH_ROW)
        rows["place"], rows["locate"] = ord(place), st.symbols[symbol]["locate"]
        rows["side"] = _letters(chosen)
        for name in ("price", "id", "ref", "leaves", "shown", "filled", "owner"):
            rows[name] = chosen[name]
        if place == "S":
            rows["stop"] = st.more["stop"][slots]
        found.append(rows)
    return np.concatenate(found)


def symbol_rows(st: Block, symbols: list[int]) -> NDArray[Any]:
    """MATCH_SYMBOL[k]."""
    rows = np.zeros(len(symbols), MATCH_SYMBOL)
    for name in MATCH_SYMBOL.names or ():
        rows[name] = st.symbols[symbols][name]
    return rows
