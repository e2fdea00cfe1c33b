"""The numba book: the rules of the reference book at the speed of memory. Structures: `records`."""

from __future__ import annotations

import hashlib
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trident_book import kernel, pools, readings, records
from trident_book.arrays import (
    EFFECT_WORDS,
    EVENT_WORDS,
    ORDER_WORDS,
    check_array,
    check_locate,
    check_output,
)
from trident_book.numba_audit import violations
from trident_core.contracts import MarketRules, Matcher, TradingState
from trident_core.dtypes import (
    DIGEST_ROW,
    EFFECT,
    EVENT,
    LEVEL,
    ORDER,
    TOP,
    Effects,
    Events,
    Levels,
    Orders,
    TopFlag,
    Tops,
)
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.stats import POSITIONS_KEPT, Anomalies, Anomaly

#: Events that are strided or not aligned are copied so many at a time.
_COPIED: Final = 1 << 14
#: Symbols read at once for the digest.
_SYMBOLS: Final = 256
_SIDES: Final = {"B": 0, "S": 1}


class NumbaBook:
    """Full L3 books of every symbol, as docs/contracts/book.md demands. Satisfies `contracts.Book`.

    Memory is bounded by the most orders that ever rested at once, and by the number of locates. Not for use
    by several threads at once; kernels run without the GIL, so different books run in parallel.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self.anomalies = Anomalies()
        self._state = pools.make_state()
        self._no_tops = np.zeros(1, TOP)
        self._no_effects = np.zeros(1, EFFECT_WORDS)

    def warm_up(self) -> None:
        """See `trident_core.contracts.Warmable`."""
        events = np.zeros(1, EVENT)
        events["type"], events["side"], events["qty"] = ord("A"), ord("B"), 1
        other = NumbaBook(Session())
        other.apply(events, np.zeros(1, TOP), np.zeros(1, EFFECT))
        other.levels(0, "B")
        other.digest()
        full = pools.make_state()
        full.g[records.LIVE], full.g[records.FAR_LOCATES] = len(full.refs), len(full.far)
        pools.with_more_room(full)

    @classmethod
    def matcher(cls, session: Session, rules: MarketRules) -> Matcher:
        """See `trident_core.contracts.MatchingBook`. Books that match nothing need not load its kernels."""
        from trident_book.matching.numba_matcher import NumbaMatcher

        return NumbaMatcher(session, rules)

    # --- applying events ------------------------------------------------------------------------------------

    def apply(self, events: Events, tops: Tops | None = None, effects: Effects | None = None) -> int:
        """Apply all events in order; return how many. See `contracts.Book.apply`.

        Raises UsageError for arrays of another dtype or shape, or outputs shorter than `events`.
        """
        n = check_array("events", events, EVENT)
        check_output("tops", tops, TOP, n)
        check_output("effects", effects, EFFECT, n)
        arrays = [array for array in (events, tops, effects) if array is not None]
        if all(array.flags.c_contiguous and array.flags.aligned for array in arrays):
            self._apply(events, tops, effects)
            return n
        for start in range(0, n, _COPIED):
            part = slice(start, min(start + _COPIED, n))
            size = part.stop - part.start
            some_tops = None if tops is None else np.empty(size, TOP)
            some_effects = None if effects is None else np.empty(size, EFFECT)
            self._apply(events[part].copy(), some_tops, some_effects)
            if tops is not None:
                tops[part] = some_tops
            if effects is not None:
                effects[part] = some_effects
        return n

    def _apply(self, events: Events, tops: Tops | None, effects: Effects | None) -> None:
        """Of contiguous arrays. The kernel sees one type of each: compiled once."""
        words = events.view(EVENT_WORDS)
        words.flags.writeable = False
        top_rows = self._no_tops if tops is None else tops
        effect_rows = self._no_effects if effects is None else effects.view(EFFECT_WORDS)
        top_step, effect_step = int(tops is not None), int(effects is not None)
        done, n = 0, len(events)
        while done < n:
            done = kernel.apply(self._state, words, top_rows, effect_rows, top_step, effect_step, done)
            if done < n:
                self._state = pools.with_more_room(self._state)
        if self._state.counts.any():
            self._take_anomalies()

    def time_events(self, events: Events, tops: Tops, effects: Effects, ticks: NDArray[np.int64]) -> None:
        """See `trident_core.contracts.TimedBook`."""
        from trident_book.numba_timing import apply_timed

        n = check_array("events", events, EVENT)
        check_output("tops", tops, TOP, n)
        check_output("effects", effects, EFFECT, n)
        check_output("ticks", ticks, np.dtype(np.int64), n)
        words = np.ascontiguousarray(events).view(EVENT_WORDS)
        words.flags.writeable = False
        rows = effects.view(EFFECT_WORDS)
        done = apply_timed(self._state, words, tops, rows, ticks, 0, False)
        while done < n:
            self._state = pools.with_more_room(self._state)
            done = apply_timed(self._state, words, tops, rows, ticks, done, True)
        self._take_anomalies()

    def _take_anomalies(self) -> None:
        counts, firsts = self._state.counts, self._state.firsts.reshape(-1, POSITIONS_KEPT)
        found = {}
        for kind, name in enumerate(records.ANOMALIES):
            if counts[kind]:
                found[name] = Anomaly(int(counts[kind]), firsts[kind, : counts[kind]].tolist())
        self.anomalies.merge(found)
        counts[:] = 0

    # --- reading --------------------------------------------------------------------------------------------

    def top(self, locate: int) -> Tops:
        """TOP[1]: the top now. CHANGED is never set: it belongs to an event."""
        row = np.zeros(1, TOP)
        symbol = self._symbol(check_locate(locate))
        row[0] = self._state.tops[symbol]
        row["locate"] = locate
        touch = []
        for name, number in (("bid", 0), ("ask", 1)):
            level = self._state.levels[self._state.sides[2 * symbol + number]["best"]]
            row[f"{name}_price"], row[f"{name}_qty"], row[f"{name}_count"] = (
                level["price"],
                level["qty"],
                level["count"],
            )
            touch.append((int(level["price"]), bool(level["count"])))
        (bid, has_bid), (ask, has_ask) = touch
        flags = 0
        if has_bid and has_ask and bid >= ask:
            flags = TopFlag.CROSSED if bid > ask else TopFlag.LOCKED
        row["flags"] = flags
        return row

    def levels(self, locate: int, side: str, n: int = 0) -> Levels:
        """LEVEL[k]: the best n levels of side "B" or "S", best first; n = 0 means all.

        Raises UsageError for another side or a negative n.
        """
        if side not in _SIDES:
            raise UsageError(f"no side {side!r}", hint='write "B" for bids or "S" for asks')
        if n < 0:
            raise UsageError(f"cannot show {n} levels", hint="0 means all")
        at = 2 * self._symbol(check_locate(locate)) + _SIDES[side]
        there = int(readings.count_levels(self._state, at))
        out = np.zeros(min(n or there, there), LEVEL)
        if len(out):
            readings.read_levels(self._state, at, out)
        return out

    def orders(self, locate: int) -> Orders:
        """ORDER[k]: live orders, bids from best to worst, then asks; in queue order in each level."""
        symbol = self._symbol(check_locate(locate))
        return self._orders_of(np.array([symbol] if symbol else [], np.uint32))

    def _orders_of(self, symbols: NDArray[np.uint32]) -> Orders:
        counts = np.zeros(len(symbols), np.int64)
        readings.count_orders(self._state, symbols, counts)
        out = np.zeros(int(counts.sum()), ORDER)
        readings.read_orders(self._state, symbols, out.view(ORDER_WORDS))
        return out

    def state(self, locate: int) -> TradingState:
        """Trading state by the last H of the symbol; UNKNOWN before it."""
        return TradingState(int(self._state.tops[self._symbol(check_locate(locate))]["state"]))

    def locates(self) -> NDArray[np.uint32]:
        """Locates that have had an event that names them, ascending, 0 left out."""
        known = np.sort(self._locates())
        return known[known > 0]

    def live_orders(self) -> int:
        """How many orders rest in all books."""
        return int(self._state.g[records.LIVE])

    def digest(self) -> bytes:
        """SHA-256 of the DIGEST_ROWs of all live orders; see docs/contracts/book.md for the bytes."""
        hasher = hashlib.sha256()
        symbols = np.argsort(self._locates()).astype(np.uint32) + np.uint32(1)
        for start in range(0, len(symbols), _SYMBOLS):
            orders = self._orders_of(symbols[start : start + _SYMBOLS])
            rows = np.empty(len(orders), DIGEST_ROW)
            for name in DIGEST_ROW.names or ():
                rows[name] = orders[name]
            hasher.update(rows.tobytes())
        return hasher.digest()

    def validate(self) -> list[str]:
        """Every violated invariant in words; empty when the books are sound. Slow: it visits everything."""
        return violations(self._state)

    def _locates(self) -> NDArray[np.uint32]:
        """The locates of symbols 1, 2, …"""
        known: NDArray[np.uint32] = self._state.tops["locate"][1 : int(self._state.g[records.SYMBOL_END])]
        return known.copy()

    def _symbol(self, locate: int) -> int:
        """0, which is empty for ever, for a locate that never was."""
        if not 0 <= locate < 1 << 32:
            return 0
        return int(kernel.find_symbol(self._state, np.uint32(locate)))
