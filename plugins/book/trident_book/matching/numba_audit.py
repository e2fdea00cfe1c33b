"""The invariants of a numba market, recomputed from its arrays without its kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from trident_book import index, records
from trident_book.matching import numba_state as s
from trident_book.matching.numba_ladder import BUYS, SELLS, TRAILING_BUYS, TRAILING_SELLS
from trident_book.matching.numba_memory import Block
from trident_core.contracts import MarketRules, TradingState

_TRADING = int(TradingState.TRADING)
Columns = dict[str, list[int]]


def violations(st: Block, rules: MarketRules) -> list[str]:
    """All violations in words, empty when sound."""
    return list(_Audit(st, rules).run())


def _columns(pool: Any) -> Columns:
    return {name: pool[name].tolist() for name in pool.dtype.names}


class _Audit:
    """One pass over everything. Columns are lists: they are walked item by item."""

    def __init__(self, st: Block, rules: MarketRules) -> None:
        self.st = st
        self.rules = rules
        self.orders = _columns(st.orders[: int(st.g[s.ORDER_END])])
        self.more = _columns(st.more[: int(st.g[s.ORDER_END])])
        self.symbols = _columns(st.symbols[: int(st.g[s.SYMBOL_END])])
        self.placed: dict[int, str] = {}  # order slots, and where they were met

    def run(self) -> Iterator[str]:
        if self.st.book.levels[0].tobytes().strip(b"\0") or self.st.book.sides[:2].tobytes().strip(b"\0"):
            yield "a null slot is not empty"
        near = np.flatnonzero(self.st.near).tolist()
        if sorted(self.symbols["locate"][1:]) != near:
            yield "locates and symbols are not the same"
        for symbol in range(1, len(self.symbols["locate"])):
            locate = self.symbols["locate"][symbol]
            if int(self.st.near[locate]) != symbol:
                yield f"locate {locate} leads to another symbol"
            yield from (f"locate {locate}: {what}" for what in self._symbol(symbol))
        yield from self._lists()
        yield from self._owners()
        yield from self._index()

    # --- a symbol -------------------------------------------------------------------------------------------

    def _symbol(self, symbol: int) -> Iterator[str]:
        best = []
        aons = 0
        for side_at in (2 * symbol, 2 * symbol + 1):
            levels = self._levels(self.st.book, side_at)
            yield from self._sorted(self.st.book, side_at, levels)
            for slot in levels:
                yield from self._book_level(side_at, slot)
                aons += int(self.st.book.levels[slot]["aons"])
            best.append(int(self.st.book.levels[levels[0]]["price"]) if levels else 0)
        state, special = self.symbols["state"][symbol], self.symbols["special"][symbol]
        if aons != self.symbols["aons"][symbol] or (aons and not special & s.SPECIAL_AON):
            yield f"{aons} all-or-none orders rest, but it says otherwise"
        if (state != _TRADING) != bool(special & s.SPECIAL_STATE):
            yield f"state {state} with the marks {special}"
        if bool(self.symbols["high"][symbol]) != bool(special & s.SPECIAL_BAND):
            yield "its band and its marks differ"
        if state == _TRADING and not special & s.SPECIAL_AON and all(best) and best[0] >= best[1]:
            yield f"bid {best[0]} crosses ask {best[1]}"
        yield from self._waiting(symbol)
        yield from self._stops(symbol)

    def _levels(self, ladder: Block, side_at: int) -> list[int]:
        """Level slots from best to worst."""
        side = ladder.sides[side_at]
        start, n, bits = int(side["start"]), int(side["n"]), int(side["bits"])
        found = dict(
            zip(
                ladder.keys[start : start + n].tolist(), ladder.slots[start : start + n].tolist(), strict=True
            )
        )
        for bit in range(records.WINDOW):
            if bits >> bit & 1:
                key = int(side["base"]) + bit * int(side["tick"])
                found[key] = int(ladder.window[side_at * records.WINDOW + bit])
        return [found[key] for key in sorted(found, reverse=True)]

    def _sorted(self, ladder: Block, side_at: int, levels: list[int]) -> Iterator[str]:
        prices = ladder.levels["price"][levels].tolist()
        if prices != sorted(set(prices), reverse=not side_at & 1):
            yield f"prices of side {side_at} are not sorted"
        if int(ladder.sides[side_at]["best"]) != (levels[0] if levels else 0):
            yield f"the best level of side {side_at} is another"

    def _walk(self, head: int, tail: int, follow: Columns) -> list[int]:
        """The slots of a list, as far as its links are sound."""
        found: list[int] = []
        before, at = 0, head
        while at and follow["prev"][at] == before and len(found) <= len(follow["next"]):
            found.append(at)
            before, at = at, follow["next"][at]
        return found if not at and (found[-1:] or [0])[0] == tail else [*found, -1]

    def _place(self, slot: int, where: str) -> Iterator[str]:
        if slot in self.placed:
            yield f"order {self.orders['id'][slot]} is {where} and {self.placed[slot]}"
        self.placed[slot] = where
        if not self.orders["leaves"][slot]:
            yield f"order {self.orders['id'][slot]} {where} has nothing left"

    def _book_level(self, side_at: int, slot: int) -> Iterator[str]:
        level, o = self.st.book.levels[slot], self.orders
        front = self._walk(int(level["head"]), int(level["tail"]), o)
        back = self._walk(int(level["back_head"]), int(level["back_tail"]), o)
        if -1 in front or -1 in back:
            yield f"a queue at {level['price']} is broken"
            return
        for at in (*front, *back):
            yield from self._place(at, "in the book")
            flags, shown = o["flags"][at], o["shown"][at]
            want = s.BOOKED | s.LISTED | (s.HIDDEN if at in back else 0)
            none = s.STOP | s.WAITS | s.MARKET | (0 if at in back else s.HIDDEN)
            if flags & want != want or flags & none or o["level"][at] != slot or o["side"][at] != side_at:
                yield f"order {o['id'][at]} is not what stands at its place"
            peak = self.more["peak"][at] if flags & s.ICEBERG else o["leaves"][at]
            most = 0 if flags & (s.HIDDEN | s.AON) else min(peak, o["leaves"][at])
            if o["price"][at] != level["price"] or not min(1, most) <= shown <= most:
                yield f"order {o['id'][at]} shows {shown} of {o['leaves'][at]} at {level['price']}"
        displayed = [at for at in front if o["shown"][at]]
        counts = (len(front) + len(back), len(displayed), sum(o["shown"][at] for at in displayed))
        if counts != (level["count"], level["displayed"], level["qty"]) or not counts[0]:
            yield f"level {level['price']} says it has {level}, and has {counts}"
        if sum(1 for at in front if o["flags"][at] & s.AON) != level["aons"]:
            yield f"level {level['price']} counts its all-or-none orders wrongly"

    def _waiting(self, symbol: int) -> Iterator[str]:
        o, found = self.orders, self.symbols
        slots = self._walk(found["wait_head"][symbol], found["wait_tail"][symbol], o)
        if -1 in slots or len(slots) != found["wait_count"][symbol]:
            yield "the list of those that wait is broken"
            return
        refs = [o["ref"][at] for at in slots]
        if refs != sorted(refs):
            yield "those that wait are not in order of entry"
        at_market = 0
        for at in slots:
            yield from self._place(at, "waiting")
            at_market += not o["flags"][at] & (s.ON_OPEN | s.ON_CLOSE)
            if not o["flags"][at] & s.WAITS or o["side"][at] >> 1 != symbol:
                yield f"order {o['id'][at]} does not wait here"
        if at_market != found["wait_markets"][symbol]:
            yield f"{at_market} market orders wait, but it says otherwise"

    def _stops(self, symbol: int) -> Iterator[str]:
        o, base = self.orders, 4 * self.symbols["stops"][symbol]
        stops: list[int] = []
        for place in (int(BUYS), int(SELLS)) if base else ():
            levels = self._levels(self.st.stops, base + place)
            yield from self._sorted(self.st.stops, base + place, levels)
            for slot in levels:
                level = self.st.stops.levels[slot]
                slots = self._walk(int(level["head"]), int(level["tail"]), o)
                if -1 in slots or len(slots) != level["count"] or not slots:
                    yield f"the stops at {level['price']} are broken"
                    return
                if [o["ref"][at] for at in slots] != sorted(o["ref"][at] for at in slots):
                    yield f"the stops at {level['price']} are not in order of entry"
                for at in slots:
                    yield from self._place(at, "a stop")
                    sells = o["side"][at] & 1
                    right = o["flags"][at] & s.STOP and o["side"][at] >> 1 == symbol
                    if not right or self.more["stop"][at] != level["price"] or sells != (place == SELLS):
                        yield f"order {o['id'][at]} is no stop at {level['price']}"
                stops += slots
        if len(stops) != self.symbols["stop_count"][symbol]:
            yield f"{len(stops)} stops, but it says otherwise"
        if bool(stops) != bool(self.symbols["special"][symbol] & s.SPECIAL_STOPS):
            yield "its stops and its marks differ"
        yield from self._trailing(base, {at for at in stops if self.more["trail"][at]})

    def _trailing(self, base: int, wanted: set[int]) -> Iterator[str]:
        found = set()
        for place in (int(TRAILING_BUYS), int(TRAILING_SELLS)) if base else ():
            for slot in self._levels(self.st.stops, base + place):
                level = self.st.stops.levels[slot]
                slots = self._walk(int(level["head"]), int(level["tail"]), self.more)
                if -1 in slots or len(slots) != level["count"]:
                    yield f"those that trail at {level['price']} are broken"
                    return
                for at in slots:
                    distance = self.more["trail"][at] + max(self.more["step"][at], 1)
                    sign = 1 if self.orders["side"][at] & 1 else -1
                    if self.more["stop"][at] + sign * distance != level["price"]:
                        yield f"order {self.orders['id'][at]} does not move at {level['price']}"
                found |= set(slots)
        if found != wanted:
            yield "those that trail are others"

    # --- everything -----------------------------------------------------------------------------------------

    def _lists(self) -> Iterator[str]:
        """Each slot is placed, or free."""
        o, free, at = self.orders, set(), int(self.st.g[s.ORDER_FREE])
        while at and at not in free:
            free.add(at)
            at = o["next"][at]
        if at or free & self.placed.keys():
            yield "the list of free orders is broken"
        if free | self.placed.keys() != set(range(1, len(o["id"]))):
            yield "an order is neither placed nor free"
        if any(o["flags"][at] for at in free):
            yield "a free order has flags"
        refs = [o["ref"][at] for at in self.placed]
        if len(set(refs)) != len(refs) or any(ref >= int(self.st.g[s.REF]) for ref in refs):
            yield "a reference is used twice, or is not yet given"

    def _owners(self) -> Iterator[str]:
        owned: dict[int, list[int]] = {}
        o = self.orders
        for at in self.placed:
            owned.setdefault(o["owner"][at], []).append(at)
        chain = {"prev": o["prev_own"], "next": o["next_own"]}
        used = self.st.owners[self.st.owners["used"] > 0]
        if len(used) != int(self.st.g[s.OWNERS_USED]):
            yield "owners are counted wrongly"
        for entry in used:
            slots = self._walk(int(entry["head"]), int(entry["tail"]), chain)
            wanted = sorted(owned.pop(int(entry["owner"]), []), key=lambda at: o["ref"][at])
            if slots != wanted:
                yield f"the orders of owner {entry['owner']} are others, or not in order of entry"
        if owned:
            yield f"owners {sorted(owned)[:3]} are not known"

    def _index(self) -> Iterator[str]:
        ids = self.st.ids
        table = ids.refs.reshape(-1, index.WORDS)
        slots = table[:, index.BUCKET :][table[:, : index.BUCKET] > 0].tolist()
        if sorted(slots) != sorted(self.placed) or len(slots) != int(ids.g[records.LIVE]):
            yield f"{len(slots)} identifiers are in the index, and {len(self.placed)} orders live"
        for at in slots:
            if int(ids.refs[self.orders["position"][at] + index.BUCKET]) != at:
                yield f"order {self.orders['id'][at]} is elsewhere in the index than it says"
        if len({self.orders["id"][at] for at in slots}) != len(slots):
            yield "an identifier is used twice"
