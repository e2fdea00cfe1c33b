"""A stand-in for the matching engine: price-time priority for plain limit orders, in pure Python."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from trident_core.contracts import Kind
from trident_core.contracts.book import TradingState
from trident_core.contracts.matching import (
    MarketRules,
    Op,
    OrderFlag,
    OrderKind,
    Reason,
    ReportFlag,
    ReportKind,
    Submitted,
    TimeInForce,
)
from trident_core.dtypes import DIGEST_ROW, EVENT, ORDER
from trident_core.orders import REPORT
from trident_core.plugins import registry
from trident_core.session import Session


@dataclass
class _Order:
    id: int
    owner: int
    locate: int
    side: int
    price: int
    leaves: int
    flags: int
    tif: int
    ref: int = 0
    filled: int = 0
    ts: int = 0


class StandIn:
    """Enough of contracts.Matcher for the tests of the server. It takes one command at a time."""

    def __init__(self, session: Session, rules: MarketRules) -> None:
        self.session, self.rules = session, rules
        self.books: dict[int, list[_Order]] = {}
        self.by_id: dict[int, _Order] = {}
        self.states: dict[int, int] = {}
        self.ref, self.match, self.seq = rules.first_ref, rules.first_match, 0
        self._rows: list[dict[str, int]] = []

    def submit(self, commands: Any, reports: Any) -> Submitted:
        taken = 0
        for command in commands:
            if self._rows:
                break
            taken += 1
            self._one(command)
        n = min(len(self._rows), len(reports))
        reports[:n] = np.zeros((), REPORT)
        for row, values in zip(reports[:n], self._rows[:n], strict=True):
            for name, value in values.items():
                row[name] = value
        self._rows = self._rows[n:]
        return Submitted(taken, n, bool(self._rows))

    def _report(self, c: Any, kind: ReportKind, **values: int) -> None:
        self.seq += 1
        self._rows.append({"seq": self.seq, "ts": int(c["ts"]), "kind": int(kind), **values})

    def _one(self, c: Any) -> None:
        op, id_, owner = int(c["op"]), int(c["id"]), int(c["owner"])
        if op == Op.NEW:
            self._new(c)
        elif op == Op.STATE:
            self.states[int(c["locate"])] = int(c["code"])
            self._report(c, ReportKind.STATE, locate=int(c["locate"]), code=int(c["code"]))
        elif op in (Op.DISCONNECT, Op.END_OF_DAY):
            gone = [o for o in self.by_id.values() if op == Op.END_OF_DAY
                    or (o.owner == owner and o.flags & OrderFlag.CANCEL_ON_DISCONNECT)]  # fmt: skip
            for order in gone:
                self._cancel(
                    c, order, order.leaves, Reason.EXPIRED if op == Op.END_OF_DAY else Reason.DISCONNECT
                )
            self._report(c, ReportKind.DONE, id=id_, owner=owner, code=op, qty=len(gone))
        else:
            order = self.by_id.get(id_)
            if order is None or order.owner != owner:
                self._report(c, ReportKind.REJECTED, id=id_, id2=int(c["id2"]), owner=owner, code=op,
                             reason=int(Reason.UNKNOWN_ID))  # fmt: skip
            elif op == Op.CANCEL:
                self._cancel(c, order, order.leaves, Reason.USER)
            elif op == Op.REDUCE:
                self._cancel(c, order, min(order.leaves, int(c["qty"])), Reason.USER)
            elif op == Op.REPLACE:
                self._replace(c, order)

    def _new(self, c: Any) -> None:
        order = _Order(
            *(int(c[n]) for n in ("id", "owner", "locate", "side", "price", "qty", "flags", "tif"))
        )
        if self.states.get(order.locate, ord("T")) != ord("T"):
            self._report(c, ReportKind.REJECTED, id=order.id, owner=order.owner, code=int(Op.NEW),
                         reason=int(Reason.STATE))  # fmt: skip
            return
        if int(c["kind"]) == OrderKind.MARKET:
            order.price, order.tif = (1 << 31 if order.side == ord("B") else 0), int(TimeInForce.IOC)
        order.ref, self.ref = self.ref, self.ref + 1
        self.by_id[order.id] = order
        self._report(c, ReportKind.ACCEPTED, **self._of(order), qty=order.leaves)
        self._match(c, order)

    def _of(self, o: _Order) -> dict[str, int]:
        return {"id": o.id, "owner": o.owner, "locate": o.locate, "side": o.side, "price": o.price,
                "leaves": o.leaves, "ref": o.ref}  # fmt: skip

    def _crossing(self, o: _Order) -> _Order | None:
        sign = 1 if o.side == ord("B") else -1
        others = [
            r for r in self.books.get(o.locate, []) if r.side != o.side and sign * (o.price - r.price) >= 0
        ]
        return min(others, key=lambda r: (sign * r.price, r.ref), default=None)

    def _match(self, c: Any, o: _Order) -> None:
        while o.leaves and (r := self._crossing(o)) is not None:
            n = min(o.leaves, r.leaves)
            for each in (o, r):
                each.leaves -= n
                each.filled += n
            flags = ReportFlag.DISPLAYED | (0 if r.leaves else ReportFlag.LEFT)
            self._report(c, ReportKind.FILL, **self._of(r), qty=n, id2=o.id, owner2=o.owner, leaves2=o.leaves,
                         ref2=self.match, flags=int(flags))  # fmt: skip
            self.match += 1
            if not r.leaves:
                self._drop(r)
        if not o.leaves:
            del self.by_id[o.id]
        elif o.tif == TimeInForce.IOC:
            self._cancel(c, o, o.leaves, Reason.IOC, 0)
        else:
            o.ts = int(c["ts"])
            self.books.setdefault(o.locate, []).append(o)
            self._report(c, ReportKind.BOOKED, **self._of(o), qty=o.leaves, flags=int(ReportFlag.DISPLAYED))

    def _drop(self, o: _Order) -> None:
        del self.by_id[o.id]
        if o in self.books.get(o.locate, []):
            self.books[o.locate].remove(o)

    def _cancel(self, c: Any, o: _Order, n: int, reason: Reason, shown: int = 1) -> None:
        o.leaves -= n
        flags = shown * int(ReportFlag.DISPLAYED | (0 if o.leaves else ReportFlag.LEFT))
        self._report(
            c, ReportKind.CANCELLED, **self._of(o), qty=n, leaves2=n * shown, reason=int(reason), flags=flags
        )
        if not o.leaves:
            self._drop(o)

    def _replace(self, c: Any, o: _Order) -> None:
        left = int(c["qty"]) - o.filled
        if left <= 0:
            self._cancel(c, o, o.leaves, Reason.IN_FLIGHT)
            return
        before, old_id = o.ref, o.id
        self._drop(o)
        o.id, o.price, o.leaves, o.ref = int(c["id2"]), int(c["price"]), left, self.ref
        self.ref += 1
        self.by_id[o.id] = o
        row = self._of(o) | {"id": old_id, "id2": o.id, "ref2": before}
        self._report(c, ReportKind.REPLACED, **row, flags=int(ReportFlag.DISPLAYED | ReportFlag.LEFT))
        self._match(c, o)

    def _sorted(self, locate: int) -> list[_Order]:
        return sorted(self.books.get(locate, []), key=lambda o: (
            o.side != ord("B"), -o.price if o.side == ord("B") else o.price, o.ref))  # fmt: skip

    def orders(self, locate: int) -> Any:
        out = np.zeros(len(self.books.get(locate, [])), ORDER)
        for row, o in zip(out, self._sorted(locate), strict=True):
            row["ref"], row["price"], row["qty"], row["locate"], row["side"] = (
                o.ref,
                o.price,
                o.leaves,
                locate,
                o.side,
            )
        return out

    def locates(self) -> Any:
        return np.array(sorted(self.books), np.uint32)

    def state(self, locate: int) -> TradingState:
        return TradingState(self.states.get(locate, ord("T")))

    def live_orders(self) -> int:
        return len(self.by_id)

    def digest(self) -> bytes:
        digest = hashlib.sha256()
        for locate in sorted(self.books):
            for o in self._sorted(locate):
                digest.update(np.array([(locate, o.side, o.price, o.ref, o.leaves)], DIGEST_ROW).tobytes())
        return digest.digest()


@pytest.fixture
def make_matcher() -> Any:
    return StandIn


@pytest.fixture
def replay() -> Callable[[bytes, Session], str]:
    """Digest of the books that framed ITCH makes, by the reference engines."""

    def run(framed: bytes, session: Session) -> str:
        parser = registry().select(Kind.PARSER, "reference").make(session)
        book = registry().select(Kind.BOOK, "reference").make(session)
        events = np.zeros(1 << 12, EVENT)
        data = np.frombuffer(framed, np.uint8)
        while len(data):
            consumed, count, _ = parser.parse_into(data, events)
            book.apply(events[:count])
            data = data[consumed:]
        assert not parser.anomalies
        assert not book.anomalies, book.anomalies
        return str(book.digest().hex())

    return run
