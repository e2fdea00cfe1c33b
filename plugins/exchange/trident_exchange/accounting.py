"""Whether an exchange has kept its books: from what it told its clients and the public, and nothing else.

Every order that was accepted must be executed, cancelled or open, to the last share; every execution must
have two sides; what is open must be what the snapshot shows; what a client heard must be the beginning of
its stream.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trident_exchange.ouch import decode_outbound
from trident_exchange.ouch import messages as m


@dataclass(slots=True)
class Ledger:
    """What the stream of one account says. `open`: by UserRefNum, (reference, shares); `problems`: what
    does not add up."""

    name: str
    accepted: int = 0
    rejected: int = 0
    replaced: int = 0
    shares_accepted: int = 0
    shares_executed: int = 0
    shares_canceled: int = 0
    open: dict[int, list[int]] = field(default_factory=dict)
    executions: list[tuple[int, int, int, str]] = field(default_factory=list)
    answered: dict[int, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def read(self, payloads: Iterable[bytes], expected: Callable[[int], m.Inbound] | None = None) -> Ledger:
        """Take the whole stream. `expected`: what was sent under a UserRefNum."""
        for payload in payloads:
            message = decode_outbound(payload)
            match message:
                case m.Accepted():
                    self._accepted(message, expected)
                case m.Rejected():
                    self.rejected += 1
                    self._answer(message.user_ref_num)
                case m.Replaced():
                    self._replaced(message)
                case m.Executed():
                    self._executed(message)
                case m.Canceled():
                    self._less(message.user_ref_num, message.quantity, "canceled")
                    self.shares_canceled += message.quantity
        return self

    def _answer(self, number: int) -> None:
        self.answered[number] = self.answered.get(number, 0) + 1
        if self.answered[number] > 1:
            self.problems.append(f"{self.name}: #{number} was answered twice")

    def _accepted(self, a: m.Accepted, expected: Callable[[int], m.Inbound] | None) -> None:
        self.accepted += 1
        self.shares_accepted += a.quantity
        self._answer(a.user_ref_num)
        self.open[a.user_ref_num] = [a.order_reference_number, a.quantity]
        sent: Any = expected(a.user_ref_num) if expected else None
        if sent is not None and (sent.side, sent.quantity, sent.symbol, sent.price) != (
            a.side, a.quantity, a.symbol, a.price,
        ):  # fmt: skip
            self.problems.append(
                f"{self.name}: #{a.user_ref_num} was accepted as another order than was sent"
            )

    def _replaced(self, r: m.Replaced) -> None:
        self.replaced += 1
        self._answer(r.user_ref_num)
        old = self.open.pop(r.orig_user_ref_num, None)
        if old is None:
            self.problems.append(f"{self.name}: #{r.orig_user_ref_num} was replaced and is not open")
            return
        self.shares_accepted += r.quantity  # the heir's shares come in, those of the old one are gone
        self.shares_canceled += old[1]
        self.open[r.user_ref_num] = [r.order_reference_number, r.quantity]

    def _executed(self, e: m.Executed) -> None:
        self._less(e.user_ref_num, e.quantity, "executed")
        self.shares_executed += e.quantity
        self.executions.append((e.match_number, e.quantity, e.price, e.liquidity_flag))

    def _less(self, number: int, quantity: int, what: str) -> None:
        order = self.open.get(number)
        if order is None or order[1] < quantity:
            self.problems.append(f"{self.name}: {quantity} of #{number} {what}, more than is open")
            return
        order[1] -= quantity
        if not order[1]:
            del self.open[number]

    def unanswered(self, sent: Iterable[m.Inbound]) -> list[int]:
        """Numbers of orders that were taken and got no answer."""
        return [
            o.user_ref_num
            for o in sent
            if isinstance(o, m.EnterOrder) and o.user_ref_num not in self.answered
        ]


def two_sides(ledgers: Iterable[Ledger]) -> list[str]:
    """Each match number has two sides of the same shares and price: one that rested, one that came."""
    sides: dict[int, list[tuple[int, int, str]]] = {}
    for ledger in ledgers:
        for number, quantity, price, flag in ledger.executions:
            sides.setdefault(number, []).append((quantity, price, flag))
    problems = []
    for number, found in sides.items():
        if len(found) != 2 or found[0][:2] != found[1][:2] or {each[2] for each in found} != {"A", "R"}:
            problems.append(f"match {number} has the sides {found}")
    return problems


def books_agree(ledgers: Iterable[Ledger], snapshot: Mapping[int, int]) -> list[str]:
    """`snapshot`: reference -> shares of all that rests, as GLIMPSE tells it."""
    known = {reference: shares for ledger in ledgers for reference, shares in ledger.open.values()}
    if known == dict(snapshot):
        return []
    lost, extra = known.keys() - snapshot.keys(), snapshot.keys() - known.keys()
    differ = [ref for ref in known.keys() & snapshot.keys() if known[ref] != snapshot[ref]]
    return [f"open at the clients and not in the books: {len(lost)}, the other way round: {len(extra)}, "
            f"with other shares: {len(differ)}"]  # fmt: skip


def heard(name: str, log: list[bytes], stream: list[bytes]) -> list[str]:
    """The client's log must be the beginning of its stream, byte for byte: nothing missed, nothing twice."""
    if stream[: len(log)] == log:
        return []
    at = next((i for i, pair in enumerate(zip(log, stream, strict=False)) if pair[0] != pair[1]), len(stream))
    return [f"{name}: message {at + 1} of {len(log)} in the client's log is not that of the stream"]
