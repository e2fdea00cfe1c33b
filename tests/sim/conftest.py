"""A checker of simulated days that is more naive than any book: dictionaries, and the rules one by one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

BUY, SELL = ord("B"), ord("S")
DOLLAR = 10_000


class NaiveMarket:
    """Applies a clean day's events and counts in `wrong` every rule that one of them breaks."""

    def __init__(self) -> None:
        self.orders: dict[int, list[int]] = {}  # ref -> [locate, side, price, shares]
        self.queues: dict[tuple[int, int], dict[int, list[int]]] = {}  # (locate, side) -> price -> refs
        self.state: dict[int, str] = {}
        self.refs: set[int] = set()
        self.matches: set[int] = set()
        self.wrong: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.peak = 0

    def apply(self, events: np.ndarray) -> None:
        last_ts = 0
        for row in events.tolist():
            _, ts, ref, ref2, price, qty, locate, kind, side, flags, aux = row
            letter = chr(kind)
            self.require(ts >= last_ts, "time goes back")
            last_ts = ts
            if letter in "AF":
                self.enter(locate, side, price, qty, ref)
            elif letter in "EC":
                self.execute(letter, locate, ref, ref2, price, qty, flags)
            elif letter in "XDU":
                self.change(letter, locate, ref, ref2, price, qty)
            elif letter in "PQ":
                self.match(ref2)
                if letter == "P":
                    self.require(self.state.get(locate) == "T", "trade in a halt")
                    self.require(ref == 0 and side == BUY and price > 0 and qty > 0, "odd P")
            elif letter == "B":
                self.require(ref2 in self.matches, "break of no match")
                self.matches.discard(ref2)
            elif letter == "H":
                self.state[locate] = chr(aux[0])
            self.peak = max(self.peak, len(self.orders))

    def require(self, holds: bool, rule: str) -> None:
        if not holds:
            self.wrong[rule] += 1

    def match(self, number: int) -> None:
        self.require(number > 0 and number not in self.matches, "match number used twice")
        self.matches.add(number)

    def enter(self, locate: int, side: int, price: int, qty: int, ref: int) -> None:
        self.require(ref > 0 and ref not in self.refs, "reference used twice")
        self.require(qty > 0 and 0 < price < 2_000_000_000, "odd add")
        self.require(price < DOLLAR or price % 100 == 0, "off the tick")
        self.refs.add(ref)
        self.orders[ref] = [locate, side, price, qty]
        self.queues.setdefault((locate, side), {}).setdefault(price, []).append(ref)
        bids, asks = self.queues.get((locate, BUY)), self.queues.get((locate, SELL))
        self.require(not (bids and asks) or max(bids) < min(asks), "crossed or locked")

    def leave(self, ref: int) -> None:
        locate, side, price, _ = self.orders.pop(ref)
        queue = self.queues[locate, side][price]
        queue.remove(ref)
        if not queue:
            del self.queues[locate, side][price]

    def known(self, locate: int, ref: int) -> bool:
        known = ref in self.orders and self.orders[ref][0] == locate
        self.require(known, "unknown reference")
        return known

    def execute(
        self, letter: str, locate: int, ref: int, match: int, price: int, qty: int, flags: int
    ) -> None:
        self.match(match)
        if not self.known(locate, ref):
            return
        order = self.orders[ref]
        side = self.queues[locate, order[1]]
        touch = max(side) if order[1] == BUY else min(side)
        self.require(self.state.get(locate) == "T", "execution in a halt")
        self.require(order[2] == touch and side[touch][0] == ref, "execution not at the head of the best")
        self.require(0 < qty <= order[3], "over-execution")
        if letter == "C":
            self.seen["C not printable" if flags & 1 else "C printable"] += 1
            self.seen["C at another price"] += price != order[2]
        order[3] -= qty
        if order[3] <= 0:
            self.leave(ref)

    def change(self, letter: str, locate: int, ref: int, new_ref: int, price: int, qty: int) -> None:
        if not self.known(locate, ref):
            return
        order = self.orders[ref]
        if letter == "X":
            self.require(0 < qty < order[3], "cancel of all or nothing")
            order[3] -= qty
            return
        self.leave(ref)
        if letter == "U":
            self.enter(locate, order[1], price, qty, new_ref)


@pytest.fixture
def naive_market() -> Any:
    return NaiveMarket()
