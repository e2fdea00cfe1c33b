"""The numba matching engine: the rules of docs/matching.md at the speed of memory. Structures:
`numba_state`."""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_book import records
from trident_book.arrays import check_array, check_locate
from trident_book.matching import (
    numba_cross,
    numba_held,
    numba_operate,
    numba_pools,
    numba_readings,
    numba_share,
    numba_stops,
    numba_submit,
)
from trident_book.matching import numba_state as s
from trident_book.matching.numba_audit import violations
from trident_book.matching.numba_price import Side, find_cross
from trident_core.contracts import (
    Allocation,
    CrossType,
    MarketRules,
    Op,
    OrderFlag,
    OrderKind,
    Submitted,
    TimeInForce,
    TradingState,
)
from trident_core.contracts.matching import LOCATE_MAX, REPORTS_MIN
from trident_core.dtypes import TOP, Levels, Orders, TopFlag, Tops
from trident_core.errors import UsageError
from trident_core.orders import COMMAND, REPORT, Commands, Reports
from trident_core.session import Session

#: Commands that are strided or not aligned are copied so many at a time.
_COPIED: Final = 1 << 12
_SIDES: Final = {"B": 0, "S": 1}
_BUY, _SELL, _NEITHER, _NOTHING = ord("B"), ord("S"), ord("N"), ord("O")
_CANCELS: Final = (s.CANCEL_ALL, s.DIRTY, s.DONE)
_STOPS: Final = (s.STOP_IN, s.TRIGGER, s.TRAIL, s.POP)
#: Commands that between them need every kernel.
_WARMING: Final[tuple[dict[str, int], ...]] = (
    {"op": Op.NEW, "id": 1, "side": _BUY, "price": 10, "kind": OrderKind.LIMIT, "tif": TimeInForce.DAY},
    {"op": Op.NEW, "id": 2, "side": _SELL, "price": 10, "kind": OrderKind.LIMIT, "tif": TimeInForce.IOC},
    {"op": Op.NEW, "id": 3, "side": _BUY, "stop": 11, "kind": OrderKind.STOP, "tif": TimeInForce.DAY},
    {"op": Op.NEW, "id": 4, "side": _BUY, "price": 9, "kind": OrderKind.LIMIT, "tif": TimeInForce.DAY,
     "flags": OrderFlag.AON},
    {"op": Op.NEW, "id": 5, "side": _SELL, "price": 9, "kind": OrderKind.LIMIT, "tif": TimeInForce.DAY},
    {"op": Op.INDICATE, "code": CrossType.HALT},
    {"op": Op.UNCROSS, "code": CrossType.HALT},
    {"op": Op.MASS_CANCEL},
)  # fmt: skip


class NumbaMatcher:
    """COMMANDs in, REPORTs out, as docs/matching.md demands. Satisfies `contracts.Matcher`.

    Memory is bounded by the most orders that ever lived at once, and by the symbols. Not for use by several
    threads at once; kernels run without the GIL, so different markets run in parallel.
    """

    def __init__(self, session: Session, rules: MarketRules) -> None:
        self.session = session
        self.rules = rules
        self._state = numba_pools.make_state(rules)

    def warm_up(self) -> None:
        """See `trident_core.contracts.Warmable`."""
        commands = np.zeros(12, COMMAND)
        for row, values in zip(commands, _WARMING, strict=False):
            for name, value in values.items():
                row[name] = value
        commands["locate"], commands["qty"] = 1, 5
        reports = np.zeros(256, REPORT)
        for allocation in (Allocation.FIFO, Allocation.PRO_RATA):
            other = NumbaMatcher(Session(), MarketRules(allocation=allocation))
            for i in range(len(_WARMING)):
                while other.submit(commands[i : i + 1], reports).more:
                    pass
            other.top(1), other.levels(1, "B"), other.state_digest()
            other._state.ids.g[records.LIVE] = len(other._state.ids.refs)
            numba_pools.make_room(other._state)

    # --- commands -------------------------------------------------------------------------------------------

    def submit(self, commands: Commands, reports: Reports) -> Submitted:
        """Carry out commands in order; write what they did. See `contracts.Matcher.submit`.

        Raises UsageError for arrays of another dtype or shape, for read-only reports, and for fewer than
        REPORTS_MIN rows.
        """
        n = check_array("commands", commands, COMMAND)
        room = check_array("reports", reports, REPORT)
        if room < REPORTS_MIN or not reports.flags.writeable:
            what = "read-only" if room >= REPORTS_MIN else f"{room} rows long"
            raise UsageError(f"reports is {what}", hint=f"pass {REPORTS_MIN} writable rows or more")
        if not _is_plain(reports):
            copy = np.zeros(room, REPORT)
            done = self.submit(commands, copy)
            reports[: done.written] = copy[: done.written]
            return done
        if not _is_plain(commands):
            return self.submit(commands[: min(n, _COPIED)].copy(), reports)
        words = commands.view(s.COMMAND_WORDS)
        words.flags.writeable = False
        return self._submit(words, reports.view(s.REPORT_WORDS))

    def _submit(self, commands: NDArray[Any], rows: NDArray[Any]) -> Submitted:
        """Of contiguous arrays. The kernels see one type of each: compiled once."""
        g = self._state.g
        first = int(g[s.SEQ])
        g[s.ROW_BASE] = first
        taken = 0
        while True:
            taken = numba_submit.submit(self._state.memory, commands, rows, taken)
            status = g[s.STATUS]
            while status == s.OTHER_KERNEL:
                self._go_on(commands, rows, taken - 1)
                status = g[s.STATUS]
                if status == s.ALL_DONE and self._state.work[0]["phase"] > s.OWN_KERNEL:
                    status = s.OTHER_KERNEL
            if status == s.NEEDS_ROOM:
                numba_pools.make_room(self._state)
            elif status == s.ROWS_FULL or (not self._state.work[0]["phase"] and taken == len(commands)):
                break
        return Submitted(taken, int(g[s.SEQ]) - first, bool(self._state.work[0]["phase"]))

    def _go_on(self, commands: NDArray[Any], rows: NDArray[Any], i: int) -> None:
        """One step of what `numba_submit` does not know. `i`: the last command taken."""
        phase = int(self._state.work[0]["phase"])
        if phase in _STOPS:
            numba_stops.run_stops(self._state.memory, rows)
        elif phase == s.SHARE:
            numba_share.run_share(self._state.memory, rows)
        elif phase in (s.OWN_HELD, s.HELD):
            numba_held.run_held(self._state.memory, rows)
        elif phase == s.OPERATE:
            self._operate(commands, rows, i)
        elif phase in _CANCELS:
            numba_operate.run_cancels(self._state.memory, rows)
        else:
            numba_cross.run_cross(self._state.memory, rows)

    def _operate(self, commands: NDArray[Any], rows: NDArray[Any], i: int) -> None:
        numba_pools.make_agenda(self._state, self.live_orders() + 1)
        numba_operate.operate(self._state.memory, rows, commands, i)
        work = self._state.work[0]
        if work["phase"] == s.CROSS:
            self._begin_cross(rows)
        elif work["phase"] == s.CANCEL_ALL and work["op"] in (Op.END_OF_DAY, Op.STATE):
            agenda = self._state.agenda[: int(work["n"])]
            agenda[:] = agenda[np.argsort(self._state.orders["ref"][agenda])]

    def time_commands(self, commands: Commands, reports: Reports, ticks: NDArray[np.int64]) -> None:
        """Carry out plain NEWs and CANCELs one by one; ticks[i], of i64[n]: what command i took inside the
        kernel, by `trident_core.ticks`. Each writes `reports` from the start anew. Only where
        `ticks.available()`.

        Raises UsageError for a command that needs another kernel, or more rows than there are.
        """
        from trident_book.matching.numba_timing import submit_timed

        words, rows = commands.view(s.COMMAND_WORDS), reports.view(s.REPORT_WORDS)
        words.flags.writeable = False
        memory = self._state.memory
        done = submit_timed(memory, words, rows, ticks, 0, False)
        while done < len(words):
            if self._state.g[s.STATUS] != s.NEEDS_ROOM:
                raise UsageError(
                    f"command {done} is not one that can be timed", hint="plain NEWs and CANCELs"
                )
            numba_pools.make_room(self._state)
            done = submit_timed(memory, words, rows, ticks, done, True)

    # --- crosses --------------------------------------------------------------------------------------------

    def _begin_cross(self, rows: NDArray[Any]) -> None:
        """UNCROSS: everything that the kernel needs for its pairs. INDICATE: all of it."""
        st = self._state
        work = st.work[0]
        symbol = st.symbols[int(work["symbol"])]
        reference = self._reference_price(symbol)
        band = int(symbol["low"]), int(symbol["high"])
        both, alone = [], []
        slots: list[NDArray[np.uint32]] = []
        for side in (0, 1):
            buffer = np.zeros(int(st.ids.g[records.LIVE]) + 1, np.uint32)
            booked, n = numba_cross.collect_cross(st.memory, work["symbol"], work["code"], side, buffer)
            chosen = st.orders[buffer[:n]]
            prices, quantities = chosen["price"].astype(np.int64), chosen["leaves"].astype(np.int64)
            waits = np.arange(n) >= booked
            slots.append(buffer[:n][np.lexsort((waits, prices if side else -prices, prices > 0))])
            both.append(Side(prices, quantities))
            only = chosen["flags"] & (s.ON_OPEN | s.ON_CLOSE) > 0
            alone.append(Side(prices[only], quantities[only]))
        at = find_cross(both[0], both[1], reference, *band)
        if work["op"] == Op.INDICATE:
            far = find_cross(alone[0], alone[1], reference, *band)
            over = at.bought - at.sold
            side = _NOTHING if not at.volume else _BUY if over > 0 else _SELL if over < 0 else _NEITHER
            numba_cross.say_indicative(
                st.memory, rows, reference, at.volume, abs(over), at.price, far.price, side
            )  # fmt: skip
            return
        agenda = np.concatenate(slots)
        numba_pools.make_agenda(st, len(agenda))
        st.agenda[: len(agenda)] = agenda
        work["at"], work["cursor"] = 0, len(slots[0])
        work["sells"], work["n"] = len(slots[0]), len(agenda)
        work["volume"] = work["total"] = at.volume
        work["price"] = at.price

    def _reference_price(self, symbol: Any) -> int:
        """MATCH-73: 0 where it is no price that an order could have."""
        price = int(symbol["reference"]) or int(symbol["last"])
        if symbol["high"] and not symbol["low"] <= price <= symbol["high"]:
            return 0
        tick = next(tick for start, tick in reversed(self.rules.ticks) if start <= price)
        return price if price % tick == 0 else 0

    # --- reading --------------------------------------------------------------------------------------------

    def top(self, locate: int) -> Tops:
        """TOP[1]: the displayed touch, with seq and ts of the last report on the symbol."""
        symbol = self._symbol(check_locate(locate))
        found = self._state.symbols[symbol]
        touch = [numba_readings.read_touch(self._state, 2 * symbol + side) for side in (0, 1)]
        (bid, bid_qty, bids), (ask, ask_qty, asks) = touch
        flags = 0
        if bids and asks and bid >= ask:
            flags = int(TopFlag.CROSSED if bid > ask else TopFlag.LOCKED)
        row = (
            found["seq"], found["ts"], bid, bid_qty, ask, ask_qty, bids, asks, locate, found["state"], flags,
        )  # fmt: skip
        return np.array([row], TOP)

    def levels(self, locate: int, side: str, n: int = 0) -> Levels:
        """LEVEL[k]: the best n displayed levels of side "B" or "S", best first; n = 0 means all.

        Raises UsageError for another side or a negative n.
        """
        if side not in _SIDES:
            raise UsageError(f"no side {side!r}", hint='write "B" for bids or "S" for asks')
        if n < 0:
            raise UsageError(f"cannot show {n} levels", hint="0 means all")
        at = 2 * self._symbol(check_locate(locate)) + _SIDES[side]
        return numba_readings.levels_of(self._state, at, n)

    def orders(self, locate: int) -> Orders:
        """ORDER[k]: displayed orders with what they show, bids from best to worst, then asks."""
        return numba_readings.orders_of(self._state, self._symbol(check_locate(locate)))

    def state(self, locate: int) -> TradingState:
        """Trading state; that with which a market begins, of a symbol that nobody has named."""
        return TradingState(int(self._state.symbols[self._symbol(check_locate(locate))]["state"]))

    def locates(self) -> NDArray[np.uint32]:
        """Locates that a command which was not rejected has named, ascending."""
        return np.flatnonzero(self._state.near).astype(np.uint32)

    def live_orders(self) -> int:
        """Orders alive, displayed or not."""
        return int(self._state.ids.g[records.LIVE])

    def digest(self) -> bytes:
        """SHA-256 over the displayed orders, as of `contracts.Book.digest`."""
        hasher = hashlib.sha256()
        for symbol in self._symbols():
            hasher.update(numba_readings.digest_rows(self._state, symbol).tobytes())
        return hasher.digest()

    def state_digest(self) -> bytes:
        """SHA-256 over all that decides what comes next (MATCH-90)."""
        hasher = hashlib.sha256()
        for symbol in self._symbols():
            hasher.update(numba_readings.match_rows(self._state, symbol).tobytes())
        hasher.update(numba_readings.symbol_rows(self._state, self._symbols()).tobytes())
        return hasher.digest()

    def validate(self) -> list[str]:
        """Every violated invariant in words; empty when the market is sound. Slow: it visits everything."""
        return violations(self._state, self.rules)

    def _symbol(self, locate: int) -> int:
        """0, which has no orders for ever, for a locate that nobody has named."""
        return int(self._state.near[locate]) if locate <= LOCATE_MAX else 0

    def _symbols(self) -> list[int]:
        """By ascending locate."""
        near = self._state.near
        found: list[int] = near[near > 0].tolist()
        return found


def _is_plain(array: NDArray[Any]) -> bool:
    return array.flags.c_contiguous and array.flags.aligned
