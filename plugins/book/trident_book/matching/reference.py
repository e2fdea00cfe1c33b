"""The reference matching engine: the rules of docs/matching.md in pure Python, written to be read.

It is the law for every other matching engine, and it is slow. Where to look for which rule:

- `reference_checks` what is refused (MATCH-4 to 8)
- `reference_book` queues of a price, what is displayed (MATCH-10, 11)
- `reference_market` steps: rest, cancel, fill, refresh (MATCH-6, 16)
- `reference_trading` an incoming order meets the book (MATCH-12 to 20, 50 to 52)
- `reference_blocks` all-or-none orders (MATCH-60 to 62)
- `reference_pairs` what crosses have in common with them
- `reference_entry` where orders go that come in, and stops (MATCH-17, 40 to 43)
- `reference_changes` replace, reduce, cancel (MATCH-30 to 35)
- `reference_crosses` states, bands, crosses (MATCH-70 to 75)
- `reference_readings` what can be read (MATCH-90)

Rules are generators of rows: a command that has more to report than there is room for stops where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trident_book.arrays import check_array, check_locate
from trident_book.matching import reference_readings as readings
from trident_book.matching.records import (
    LIMIT,
    REPORT_WORDS,
    STOP_LIMIT,
    Command,
    Row,
    commands_of,
)
from trident_book.matching.reference_book import Order
from trident_book.matching.reference_changes import cancel_many, reduce, reject, replace
from trident_book.matching.reference_checks import first_stop, wrong_with_new
from trident_book.matching.reference_crosses import operate
from trident_book.matching.reference_entry import enter, settle
from trident_book.matching.reference_market import Market
from trident_core.contracts import MarketRules, Op, Reason, ReportKind, Submitted, TradingState
from trident_core.contracts.matching import REPORTS_MIN
from trident_core.dtypes import LEVEL, ORDER, Levels, Orders, Tops
from trident_core.errors import UsageError
from trident_core.orders import COMMAND, REPORT, Commands, Reports
from trident_core.session import Session

_Rule = Callable[[Market, Command], Iterator[Row]]


def _new(market: Market, c: Command) -> Iterator[Row]:
    """NEW: ACCEPTED or REJECTED, and what comes of it."""
    wrong = wrong_with_new(market, c)
    if wrong:
        yield reject(market, c, wrong)
        return
    symbol = market.symbol(c.locate)
    order = Order(
        id=c.id, owner=c.owner, locate=c.locate, side=c.side, kind=c.kind, tif=c.tif, flags=c.flags,
        stp=c.stp, price=c.price if c.kind in (LIMIT, STOP_LIMIT) else 0, leaves=c.qty,
        peak=c.peak, min_qty=c.min_qty, stop=first_stop(symbol, c), trail=c.trail, step=c.step, slip=c.slip,
        mpid=c.mpid,
    )  # fmt: skip
    market.name_anew(order)
    market.orders[order.id] = order
    yield Row(
        ReportKind.ACCEPTED, order.locate, id=order.id, ref=order.ref, price=order.price, qty=order.leaves,
        leaves=order.leaves, owner=order.owner, mpid=order.mpid, side=order.side,
    )  # fmt: skip
    yield from enter(market, order)
    yield from settle(market, symbol)


def _unknown(market: Market, c: Command) -> Iterator[Row]:
    yield reject(market, c, Reason.BAD_OP)


_RULES: Final[dict[int, _Rule]] = {
    Op.NEW: _new, Op.REPLACE: replace, Op.REDUCE: reduce, Op.CANCEL: reduce,
    Op.MASS_CANCEL: cancel_many, Op.DISCONNECT: cancel_many, Op.END_OF_DAY: cancel_many,
    Op.STATE: operate, Op.BAND: operate, Op.REFERENCE: operate, Op.INDICATE: operate, Op.UNCROSS: operate,
}  # fmt: skip


class ReferenceMatcher:
    """COMMANDs in, REPORTs out, as docs/matching.md demands. Satisfies `contracts.Matcher`.

    Memory grows with the living orders and the symbols, never with the number of commands.
    """

    def __init__(self, session: Session, rules: MarketRules) -> None:
        self.session = session
        self.rules = rules
        self._market = Market(rules)
        self._running: Iterator[Row] | None = None  # the command that has more to report
        self._ahead: Row | None = None  # its next row
        self._seq = 0

    def submit(self, commands: Commands, reports: Reports) -> Submitted:
        """Carry out commands in order; write what they did. See `contracts.Matcher.submit`.

        Raises UsageError for arrays of another dtype or shape, for read-only reports, and for fewer than
        REPORTS_MIN rows.
        """
        check_array("commands", commands, COMMAND)
        room = check_array("reports", reports, REPORT)
        if room < REPORTS_MIN or not reports.flags.writeable:
            what = "read-only" if room >= REPORTS_MIN else f"{room} rows long"
            raise UsageError(f"reports is {what}", hint=f"pass {REPORTS_MIN} writable rows or more")
        found: list[tuple[int, ...]] = []
        self._go_on(found, room)
        taken = 0
        for command in commands_of(commands):
            if self._running is not None or len(found) == room:
                break
            taken += 1
            self._market.clock = max(self._market.clock, command.ts)
            self._running = _RULES.get(command.op, _unknown)(self._market, command)
            self._ahead = next(self._running)
            self._go_on(found, room)
        reports[: len(found)].view(REPORT_WORDS)[:] = found
        return Submitted(taken, len(found), self._running is not None)

    def _go_on(self, found: list[tuple[int, ...]], room: int) -> None:
        """With the running command, while there is room."""
        while self._running is not None and len(found) < room:
            row = self._ahead
            assert row is not None
            found.append(self._written(row))
            self._ahead = next(self._running, None)
            if self._ahead is None:
                self._running = None

    def _written(self, row: Row) -> tuple[int, ...]:
        self._seq += 1
        symbol = self._market.symbols.get(row.locate)
        if symbol is not None and row.kind != ReportKind.REJECTED:
            symbol.seq, symbol.ts = self._seq, self._market.clock
        return row.columns(self._seq, self._market.clock)

    # --- reading --------------------------------------------------------------------------------------------

    def top(self, locate: int) -> Tops:
        """TOP[1]: the displayed touch, with seq and ts of the last report on the symbol."""
        return readings.top_of(self._market.look(check_locate(locate)))

    def levels(self, locate: int, side: str, n: int = 0) -> Levels:
        """LEVEL[k]: the best n displayed levels of side "B" or "S", best first; n = 0 means all.

        Raises UsageError for another side or a negative n.
        """
        if side not in ("B", "S"):
            raise UsageError(f"no side {side!r}", hint='write "B" for bids or "S" for asks')
        if n < 0:
            raise UsageError(f"cannot show {n} levels", hint="0 means all")
        symbol = self._market.symbols.get(check_locate(locate))
        return np.empty(0, LEVEL) if symbol is None else readings.levels_of(symbol.side(ord(side)), n)

    def orders(self, locate: int) -> Orders:
        """ORDER[k]: displayed orders with what they show, bids from best to worst, then asks."""
        symbol = self._market.symbols.get(check_locate(locate))
        return np.empty(0, ORDER) if symbol is None else readings.orders_of(symbol)

    def state(self, locate: int) -> TradingState:
        """Trading state; that with which a market begins, of a symbol that nobody has named."""
        return TradingState(self._market.look(check_locate(locate)).state)

    def locates(self) -> NDArray[np.uint32]:
        """Locates that a command which was not rejected has named, ascending."""
        return np.array(sorted(self._market.symbols), np.uint32)

    def live_orders(self) -> int:
        """Orders alive, displayed or not."""
        return len(self._market.orders)

    def digest(self) -> bytes:
        """SHA-256 over the displayed orders, as of `contracts.Book.digest`."""
        return readings.digest(self._market)

    def state_digest(self) -> bytes:
        """SHA-256 over all that decides what comes next (MATCH-90)."""
        return readings.state_digest(self._market)

    def validate(self) -> list[str]:
        """Every violated invariant in words; empty when the market is sound. Slow: it visits everything."""
        return readings.violations(self._market)
