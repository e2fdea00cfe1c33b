"""Reports of the matching engine as messages of OUCH, to the accounts whose orders they are about."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from trident_core.contracts.matching import CrossType, Op, Reason, ReportFlag, ReportKind
from trident_core.orders import REPORT, Reports
from trident_exchange.entering import CANCELS, reject_reason
from trident_exchange.open_orders import OpenOrder
from trident_exchange.ouch import messages as m
from trident_exchange.ouch import quick
from trident_exchange.ouch.codec import encode
from trident_exchange.ouch.codes import Cancel, Liquidity, Reject
from trident_exchange.ouch.options import Options, Tag

_UNPACK: Final = struct.Struct("<QQQQQQqQQQIII4xBBBBB3x")
if _UNPACK.size != REPORT.itemsize:
    raise ImportError(f"a REPORT of {REPORT.itemsize} bytes")

_CROSS_FLAGS: Final = {
    CrossType.OPENING: Liquidity.OPENING_CROSS,
    CrossType.CLOSING: Liquidity.CLOSING_CROSS,
    CrossType.HALT: Liquidity.HALT_CROSS,
}
_AIQ_DEFAULT: Final = "D"


class Row(NamedTuple):
    """One REPORT, in Python's numbers."""

    seq: int
    ts: int
    id: int
    id2: int
    ref: int
    ref2: int
    price: int
    qty: int
    leaves: int
    leaves2: int
    locate: int
    owner: int
    owner2: int
    kind: int
    reason: int
    side: int
    flags: int
    code: int


def rows_of(reports: Reports) -> list[Row]:
    """REPORT[n] as rows."""
    return [Row._make(each) for each in _UNPACK.iter_unpack(reports.tobytes())]


class Answers:
    """Keeps `orders` (id -> order) as the reports have it, and says to each account what it must know.

    `say(account, message)` is called in the order in which it happened. `counts`: "executed", "rejected".
    `crossing`: the type of the cross of a symbol that is under way.
    """

    def __init__(
        self, orders: dict[int, OpenOrder], say: Callable[[int, bytes], None], counts: dict[str, int]
    ) -> None:
        self.orders = orders
        self.crossing: dict[int, int] = {}
        self.modifying = 0
        self._say = say
        self._counts = counts
        self._by_kind: dict[int, Callable[[Row], None]] = {
            ReportKind.ACCEPTED: self._accepted, ReportKind.REJECTED: self._rejected,
            ReportKind.CANCELLED: self._cancelled, ReportKind.REPLACED: self._replaced,
            ReportKind.REFRESHED: self._refreshed,
        }  # fmt: skip

    def take(self, rows: Iterable[Row]) -> None:
        """All rows of some commands, each command's to its end."""
        before: Row | None = None
        for row in rows:
            if before is not None:
                self._fill(before, row)
                before = None
            if row.kind == ReportKind.FILL:
                before = row
            elif (answer := self._by_kind.get(row.kind)) is not None:
                answer(row)
        if before is not None:
            self._fill(before, None)

    # --- one kind of report each

    def _accepted(self, row: Row) -> None:
        order = self.orders[row.id]
        order.leaves = row.leaves
        self._say(order.account, quick.accepted(order.raw, row.ts, row.ref))

    def _rejected(self, row: Row) -> None:
        if row.code == Op.NEW:
            self._refused(row, self.orders.pop(row.id))
        elif row.code == Op.REPLACE and row.id2 in self.orders and row.id2 != row.id:
            heir = self.orders.pop(row.id2)
            if row.reason != Reason.UNKNOWN_ID:  # the order was gone when the replace came: nothing is said
                self._refused(row, heir)

    def _refused(self, row: Row, order: OpenOrder) -> None:
        e = order.entered
        if row.reason == Reason.POST_ONLY and row.code == Op.NEW:
            # OUCH has no such rejection: the order is accepted and dead.
            self._say(order.account, quick.accepted(order.raw, row.ts, 0, b"D"))
            self._cancel(order, row.ts, e.quantity, Cancel.POST_ONLY)
            return
        reason = (
            reject_reason(row.reason, e) if row.reason != Reason.POST_ONLY else Reject.REPLACE_NOT_ALLOWED
        )
        self._say(order.account, encode(rejected(row.ts, e.user_ref_num, reason, e.cl_ord_id, order.index)))

    def _fill(self, row: Row, after: Row | None) -> None:
        """A row of a resting order, and of the one it met unless that has a row of its own."""
        paired = row.flags & (ReportFlag.SECOND | ReportFlag.CROSS)
        paired |= after is not None and after.kind == ReportKind.FILL and after.flags & ReportFlag.SECOND
        if row.flags & ReportFlag.CROSS:
            flag = _CROSS_FLAGS.get(self.crossing.get(row.locate, 0), Liquidity.HALT_CROSS)  # type: ignore[call-overload]
        else:
            flag = Liquidity.ADDED if row.flags & ReportFlag.DISPLAYED else Liquidity.ADDED_HIDDEN
        self._executed(row.id, row, row.leaves, flag)
        if not paired:
            self._executed(row.id2, row, row.leaves2, Liquidity.REMOVED)

    def _executed(self, id_: int, row: Row, leaves: int, flag: str) -> None:
        order = self.orders[id_]
        order.executed += row.qty
        self._counts["executed"] += 1
        order.leaves = leaves
        number = order.entered.user_ref_num
        if order.index:
            options = tag_of(order.index) or ()
            told = encode(m.Executed(row.ts, number, row.qty, row.price, flag, row.ref2, options))
        else:
            told = quick.executed(row.ts, number, row.qty, row.price, flag, row.ref2)
        self._say(order.account, told)
        if not leaves:
            del self.orders[id_]

    def _cancelled(self, row: Row) -> None:
        order = self.orders[row.id]
        order.leaves = row.leaves
        if row.id == self.modifying:
            self._modified(row.ts, order)
        elif row.reason == Reason.SELF_TRADE:
            strategy = next((str(v) for tag, v in order.entered.options or () if tag == Tag.AIQ_STRATEGY), "")
            self._say(order.account, encode(m.AiqCanceled(
                row.ts, order.entered.user_ref_num, row.qty, Cancel.SELF_MATCH_PREVENTION, row.qty,
                max(row.price, 0), Liquidity.REMOVED, strategy or _AIQ_DEFAULT, tag_of(order.index),
            )))  # fmt: skip
        else:
            by = (
                order.by if row.reason == Reason.USER and order.by else CANCELS.get(row.reason, Cancel.SYSTEM)
            )
            self._cancel(order, row.ts, row.qty, by)
        if not row.leaves:
            del self.orders[row.id]

    def _cancel(self, order: OpenOrder, ts: int, quantity: int, reason: str) -> None:
        number = order.entered.user_ref_num
        if order.index:
            told = encode(m.Canceled(ts, number, quantity, reason, tag_of(order.index)))
        else:
            told = quick.canceled(ts, number, quantity, reason)
        self._say(order.account, told)

    def _modified(self, ts: int, order: OpenOrder) -> None:
        e = order.entered
        self._say(
            order.account, encode(m.Modified(ts, e.user_ref_num, e.side, order.leaves, tag_of(order.index)))
        )

    def _replaced(self, row: Row) -> None:
        old, order = self.orders.pop(row.id), self.orders[row.id2]
        e = order.entered
        order.executed, order.leaves = old.executed, row.leaves
        self._say(order.account, encode(m.Replaced(
            row.ts, old.entered.user_ref_num, e.user_ref_num, e.side, row.leaves, e.symbol, e.price,
            e.time_in_force, e.display, row.ref, e.capacity, e.intermarket_sweep, e.cross_type, "L",
            e.cl_ord_id, e.options,
        )))  # fmt: skip

    def _refreshed(self, row: Row) -> None:
        order = self.orders[row.id]
        options: Options = ((Tag.DISPLAY_QUANTITY, row.qty), (Tag.SECONDARY_ORD_REF_NUM, row.ref))
        options += tag_of(order.index) or ()
        self._say(order.account, encode(m.Restated(row.ts, order.entered.user_ref_num, "R", options)))


def rejected(ts: int, user_ref_num: int, reason: int, cl_ord_id: str, index: int) -> m.Rejected:
    return m.Rejected(ts, user_ref_num, int(reason), cl_ord_id, tag_of(index))


def tag_of(index: int) -> Options | None:
    """The UserRefIdx of an answer: none for the channel 0."""
    return ((Tag.USER_REF_IDX, index),) if index else None
