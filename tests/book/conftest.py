"""Streams of events by hand and by chance, and an oracle more naive than the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core.dtypes import EFFECT, EVENT, TOP, EffectFlag, Outcome, TopFlag
from trident_core.session import Session

SECOND = 1_000_000_000


class Stream:
    """Events written as a day's story: `Stream().add(1, "B", 100, 5000).execute(1, 30)`.

    Locate 1 unless told. Sequence numbers count from 1, times from 09:30:00 by a microsecond.
    """

    def __init__(self) -> None:
        self._rows: list[np.ndarray] = []

    def put(self, letter: str, locate: int = 1, aux: bytes = b"", **columns: int) -> Stream:
        row = np.zeros(1, EVENT)
        row["seq"] = len(self._rows) + 1
        row["ts"] = 34_200 * SECOND + 1000 * len(self._rows)
        row["type"], row["locate"] = ord(letter), locate
        row["aux"] = np.frombuffer(aux.ljust(8, b"\0"), np.uint8)
        for name, value in columns.items():
            row[name] = value
        self._rows.append(row)
        return self

    def add(self, ref: int, side: str, qty: int, price: int, *, locate: int = 1, mpid: str = "") -> Stream:
        columns = {"ref": ref, "side": ord(side), "qty": qty, "price": price}
        return self.put("F" if mpid else "A", locate, mpid.encode(), **columns)

    def execute(self, ref: int, qty: int, *, locate: int = 1, match: int = 700) -> Stream:
        return self.put("E", locate, ref=ref, qty=qty, ref2=match)

    def execute_at(
        self, ref: int, qty: int, price: int, *, printable: bool = True, locate: int = 1, match: int = 800
    ) -> Stream:
        return self.put("C", locate, ref=ref, qty=qty, price=price, ref2=match, flags=0 if printable else 1)

    def cancel(self, ref: int, qty: int, *, locate: int = 1) -> Stream:
        return self.put("X", locate, ref=ref, qty=qty)

    def delete(self, ref: int, *, locate: int = 1) -> Stream:
        return self.put("D", locate, ref=ref)

    def replace(self, ref: int, new: int, qty: int, price: int, *, locate: int = 1) -> Stream:
        return self.put("U", locate, ref=ref, ref2=new, qty=qty, price=price)

    def halt(self, state: str, *, locate: int = 1) -> Stream:
        return self.put("H", locate, state.encode())

    def events(self) -> np.ndarray:
        return np.concatenate(self._rows) if self._rows else np.zeros(0, EVENT)


class Applied:
    """A reference book after a stream, with the top and the effect of each event."""

    def __init__(self, stream: Stream | np.ndarray) -> None:
        self.events = stream.events() if isinstance(stream, Stream) else stream
        self.book = ReferenceBook(Session())
        self.tops = np.zeros(len(self.events), TOP)
        self.effects = np.zeros(len(self.events), EFFECT)
        assert self.book.apply(self.events, self.tops, self.effects) == len(self.events)
        assert self.book.validate() == []

    def effect(self, i: int = -1) -> tuple[int, int, int, str, str, str]:
        """(price, qty, remaining, side, outcome, flags) of event i; flags as names joined by spaces."""
        row = self.effects[i]
        flags = " ".join(flag.name or "" for flag in EffectFlag if row["flags"] & flag)
        side = chr(row["side"]) if row["side"] else ""
        price, qty, remaining = (int(row[name]) for name in ("price", "qty", "remaining"))
        return (price, qty, remaining, side, Outcome(row["outcome"]).name, flags)

    def flags(self, i: int = -1) -> str:
        return " ".join(flag.name or "" for flag in TopFlag if self.tops[i]["flags"] & flag)

    def queue(self, locate: int = 1) -> list[tuple[int, str, int, int]]:
        """(ref, side, qty, price) of all live orders, in the contract's order."""
        return [
            (int(o["ref"]), chr(o["side"]), int(o["qty"]), int(o["price"])) for o in self.book.orders(locate)
        ]

    def counts(self) -> dict[str, int]:
        return {name: item.count for name, item in self.book.anomalies.items()}


class NaiveBook:
    """Orders in one flat list, oldest first; everything else is searched for and added up each time."""

    def __init__(self) -> None:
        self.orders: list[dict[str, Any]] = []
        self.states: dict[int, int] = {}
        self.last_touch: dict[int, tuple[int, ...]] = {}
        self.named: set[int] = set()
        self.counts: list[tuple[str, int]] = []

    def find(self, ref: int) -> dict[str, Any] | None:
        return next((order for order in self.orders if order["ref"] == ref), None)

    def drop(self, order: dict[str, Any]) -> None:
        self.orders = [other for other in self.orders if other is not order]

    def level(self, locate: int, side: str, price: int) -> list[dict[str, Any]]:
        return [o for o in self.orders if (o["locate"], o["side"], o["price"]) == (locate, side, price)]

    def touch(self, locate: int) -> tuple[int, ...]:
        found: list[list[int]] = []
        for side, best in (("B", max), ("S", min)):
            prices = [o["price"] for o in self.orders if o["locate"] == locate and o["side"] == side]
            queue = self.level(locate, side, best(prices)) if prices else []
            found.append(
                [queue[0]["price"], sum(o["qty"] for o in queue), len(queue)] if queue else [0, 0, 0]
            )
        (bid, bid_qty, bids), (ask, ask_qty, asks) = found
        return (bid, bid_qty, ask, ask_qty, bids, asks)

    def apply(self, event: np.void) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """(TOP as a tuple, EFFECT as a tuple) of one event."""
        seq, locate, letter = int(event["seq"]), int(event["locate"]), chr(event["type"])
        self.named.add(locate)
        if letter == "H":
            state = chr(event["aux"][0])
            self.states[locate] = ord(state) if state in "THPQ" else 0
        effect: tuple[Any, ...] = (0, 0, 0, b"\0\0\0\0", 0, Outcome.NONE, 0)
        if letter in "AF":
            effect = self.add(event, seq)
        elif letter in "ECXDU":
            order = self.find(int(event["ref"]))
            if order is None:
                self.counts.append(("unknown_ref", seq))
                effect = (0, 0, 0, b"\0\0\0\0", 0, Outcome.UNKNOWN_REF, 0)
            else:
                effect = self.modify(event, seq, letter, order)
                locate = order["locate"]
        touch, before = self.touch(locate), self.last_touch.get(locate, (0,) * 6)
        self.last_touch[locate] = touch
        flags = TopFlag.CHANGED if touch != before else 0
        if touch[4] and touch[5]:
            flags |= TopFlag.CROSSED if touch[0] > touch[2] else TopFlag.LOCKED if touch[0] == touch[2] else 0
        was_crossed = before[4] and before[5] and before[0] > before[2]
        if flags & TopFlag.CROSSED and not was_crossed and self.states.get(locate) == ord("T"):
            self.counts.append(("crossed", seq))
        return (seq, int(event["ts"]), *touch, locate, self.states.get(locate, 0), int(flags)), effect

    def add(self, event: np.void, seq: int) -> tuple[Any, ...]:
        side, qty, price = chr(event["side"]), int(event["qty"]), int(event["price"])
        if side not in ("B", "S") or qty == 0:
            self.counts.append(("rejected_add", seq))
            return (0, 0, 0, b"\0\0\0\0", 0, Outcome.REJECTED, 0)
        mpid = event["aux"][:4].tobytes() if chr(event["type"]) == "F" else b"\0\0\0\0"
        outcome = self.enter(event, int(event["ref"]), int(event["locate"]), side, mpid, seq)
        return (price, qty, qty, mpid, ord(side), outcome, 0)

    def enter(self, event: np.void, ref: int, locate: int, side: str, mpid: bytes, seq: int) -> Outcome:
        outcome = Outcome.APPLIED
        stale = self.find(ref)
        if stale is not None:
            self.drop(stale)
            self.counts.append(("duplicate_ref", seq))
            outcome = Outcome.DUPLICATE_REF
        price, qty, ts = int(event["price"]), int(event["qty"]), int(event["ts"])
        if qty == 0:
            self.counts.append(("rejected_add", seq))
            return Outcome.REJECTED
        self.orders.append(
            {"ref": ref, "locate": locate, "side": side, "price": price, "qty": qty, "ts": ts, "mpid": mpid}
        )
        return outcome

    def modify(self, event: np.void, seq: int, letter: str, order: dict[str, Any]) -> tuple[Any, ...]:
        flags, outcome = 0, Outcome.APPLIED
        if order["locate"] != event["locate"]:
            flags |= EffectFlag.LOCATE_MISMATCH
            self.counts.append(("locate_mismatch", seq))
        if letter == "E" and self.level(order["locate"], order["side"], order["price"])[0] is not order:
            flags |= EffectFlag.NOT_AT_HEAD
            self.counts.append(("not_at_head", seq))
        before = order["qty"]
        taken = before if letter in "DU" else int(event["qty"])
        if taken > before:
            outcome, taken = Outcome.OVER_EXECUTION, before
            self.counts.append(("over_execution", seq))
        order["qty"] -= taken
        remaining = order["qty"]
        if remaining == 0:
            self.drop(order)
            flags |= EffectFlag.LEFT
        if letter == "U":
            new = int(event["ref2"])
            outcome = self.enter(event, new, order["locate"], order["side"], order["mpid"], seq)
            remaining = int(event["qty"])
        return (order["price"], taken, remaining, order["mpid"], ord(order["side"]), outcome, int(flags))


class Chance:
    """A day by chance: A F E C X D U P Q B H over a few locates, a share of it anomalous.

    `anomalies` is roughly the share of events with an unknown or duplicate reference, a foreign locate or no
    shares. `foreign`: duplicate references may be those of another symbol's orders.
    """

    def __init__(self, seed: int, *, symbols: int, anomalies: float, foreign: bool) -> None:
        self.rng = np.random.default_rng(seed)
        self.stream = Stream()
        self.symbols = symbols
        self.rate = anomalies / 4
        self.foreign = foreign
        self.live: dict[int, int] = {}  # ref -> locate; stale at times, which makes unknown references
        self.last_ref = 1

    def rarely(self) -> bool:
        return bool(self.rng.random() < self.rate)

    def pick(self, items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def known(self, locate: int | None = None) -> int:
        """The reference of an order, probably live; an unknown one now and then."""
        refs = [ref for ref, where in self.live.items() if locate in (None, where)]
        return self.last_ref + 1_000_000 if not refs or self.rarely() else int(self.pick(refs))

    def fresh(self, locate: int) -> int:
        """A new reference; one that lives now and then."""
        if self.live and self.rarely():
            return self.known(None if self.foreign else locate)
        self.last_ref += int(self.rng.integers(1, 4))
        return self.last_ref

    def step(self) -> None:
        letter = self.pick("AAAAAFFEECXXDDUUPQBH")
        side = self.pick("BS")
        locate = int(self.rng.integers(1, self.symbols + 1))
        ref = self.known()
        if letter in "ECXDU" and not self.rarely():
            locate = self.live.get(ref, locate)
        price = 1000 + 100 * locate + int(self.rng.integers(-6, 7)) + (4 if side == "S" else -4)
        qty = 0 if self.rarely() else int(self.rng.integers(1, 10)) * self.pick([1, 10])
        if letter in "AF":
            ref = self.fresh(locate)
            self.live[ref] = locate
            mpid = self.pick(["ABCD", "NITE", "XY  "]) if letter == "F" else ""
            self.stream.add(ref, side, qty, price, locate=locate, mpid=mpid)
        elif letter in "ECXDU":
            self.modify(letter, ref, qty, price, locate)
        else:
            self.other(letter, qty, price, locate)

    def modify(self, letter: str, ref: int, qty: int, price: int, locate: int) -> None:
        match = int(self.rng.integers(1, 500))
        if letter == "E":
            self.stream.execute(ref, qty, locate=locate, match=match)
        elif letter == "C":
            printable = self.pick([True, True, False])
            self.stream.execute_at(ref, qty, price, printable=printable, locate=locate, match=match)
        elif letter == "X":
            self.stream.cancel(ref, qty, locate=locate)
        elif letter == "D":
            self.stream.delete(ref, locate=locate)
            self.live.pop(ref, None)
        else:
            where = self.live.pop(ref, locate)
            new = ref if self.rarely() else self.fresh(where)
            self.live[new] = where
            self.stream.replace(ref, new, qty, price, locate=locate)

    def other(self, letter: str, qty: int, price: int, locate: int) -> None:
        match = int(self.rng.integers(1, 500))
        if letter == "P":
            self.stream.put("P", locate, side=ord("B"), qty=qty, price=price, ref2=match)
        elif letter == "Q":
            self.stream.put(
                "Q", locate, self.pick([b"O", b"C", b"H"]), qty=qty << 20, price=price, ref2=match
            )
        elif letter == "B":
            self.stream.put("B", locate, ref2=match)
        else:
            self.stream.halt(self.pick("THPQ"), locate=locate)


def chance_events(
    seed: int, n: int, *, symbols: int = 4, anomalies: float = 0.1, foreign: bool = True
) -> np.ndarray:
    """EVENT[n] of a day by chance; see `Chance`."""
    day = Chance(seed, symbols=symbols, anomalies=anomalies, foreign=foreign)
    for locate in range(1, symbols + 1):
        day.stream.halt("T", locate=locate)
    for _ in range(n - symbols):
        day.step()
    return day.stream.events()


@pytest.fixture(scope="session")
def stream() -> type[Stream]:
    return Stream


@pytest.fixture(scope="session")
def applied() -> type[Applied]:
    return Applied


@pytest.fixture(scope="session")
def naive_book() -> type[NaiveBook]:
    return NaiveBook


@pytest.fixture(scope="session")
def chance() -> Callable[..., np.ndarray]:
    return chance_events
