"""Commands by chance for matching engines: from a seed, small ones that hypothesis can shrink, and any bytes.

    from trident_conformance import orders
    rules, commands = orders.market(seed=7), orders.stream(seed=7, n=10_000, flavour="everything")

Orders are named that live, that are gone and that never were; prices lie close together, so that all meets.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np
from hypothesis import strategies as st

from trident_core.contracts import Allocation, CrossType, MarketRules, Op, OrderFlag, SelfTrade
from trident_core.orders import COMMAND, Commands

Row = dict[str, Any]

#: What a stream is made of: op -> weight. `everything` has all of it; `bytes` is not one of them: see `wild`.
FLAVOURS: Final[dict[str, dict[Op, int]]] = {
    "plain": {Op.NEW: 60, Op.CANCEL: 20, Op.REPLACE: 10, Op.REDUCE: 10},
    "stops": {Op.NEW: 70, Op.CANCEL: 10, Op.REPLACE: 15, Op.REDUCE: 5},
    "blocks": {Op.NEW: 75, Op.CANCEL: 15, Op.REPLACE: 5, Op.REDUCE: 5},
    "auctions": {
        Op.NEW: 65, Op.CANCEL: 8, Op.REPLACE: 8, Op.REDUCE: 4, Op.UNCROSS: 4, Op.STATE: 4, Op.INDICATE: 3,
        Op.REFERENCE: 2, Op.BAND: 1,
    },
    "everything": {
        Op.NEW: 80, Op.CANCEL: 10, Op.REPLACE: 12, Op.REDUCE: 6, Op.STATE: 2, Op.UNCROSS: 2, Op.INDICATE: 1,
        Op.BAND: 1, Op.REFERENCE: 1, Op.MASS_CANCEL: 1, Op.DISCONNECT: 1, Op.END_OF_DAY: 1,
    },
}  # fmt: skip
_MIDDLE: Final = 10_000
_STPS: Final = (0, 0, 0, 0, *map(int, SelfTrade))


class Chance(Protocol):
    """Where chance comes from: a seed, or hypothesis."""

    def pick(self, options: Sequence[Any]) -> Any: ...

    def number(self, low: int, high: int) -> int: ...


class _Seeded:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, options: Sequence[Any]) -> Any:
        return options[int(self._random.random() * len(options))]

    def number(self, low: int, high: int) -> int:
        return low + int(self._random.random() * (high - low + 1))


class _Drawn:
    def __init__(self, draw: Callable[[Any], Any]) -> None:
        self._draw = draw

    def pick(self, options: Sequence[Any]) -> Any:
        return self._draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))


class Maker:
    """Makes commands one after the other, and remembers the orders that it made."""

    def __init__(self, chance: Chance, flavour: str, *, locates: int, owners: int, spread: int) -> None:
        self.chance = chance
        self.flavour = flavour
        self.locates, self.owners, self.spread = locates, owners, spread
        self._ops = [op for op, weight in FLAVOURS[flavour].items() for _ in range(weight)]
        self._known: list[tuple[int, int, int]] = []  # id, owner, locate: the newest 24
        self._next_id = 1
        self._clock = 0

    def one(self) -> Row:
        """The next command, as columns that are not 0."""
        op = self.chance.pick(self._ops)
        self._clock += self.chance.number(0, 3)
        row: Row = {"op": int(op), "ts": self._clock}
        if op is Op.NEW:
            return row | self._new()
        if op in (Op.CANCEL, Op.REDUCE, Op.REPLACE):
            return row | self._change(op)
        if op in (Op.MASS_CANCEL, Op.DISCONNECT, Op.END_OF_DAY):
            return row | {
                "owner": self._owner(), "locate": self.chance.pick([0, self._locate()]),
                "side": self.chance.pick([0, 0, ord("B"), ord("S")]),
            }  # fmt: skip
        return row | self._operate(op)

    def _new(self) -> Row:
        pick, number = self.chance.pick, self.chance.number
        fresh = pick([True] * 30 + [False])
        number_of = self._next_id if fresh or not self._known else pick(self._known)[0]
        self._next_id += fresh
        row: Row = {
            "id": number_of, "owner": self._owner(), "locate": self._locate(), "side": pick(b"BS"),
            "kind": pick(b"LLLLLLLLLM"), "tif": pick(b"DDDDDDDDGGGIIF"),
            "qty": number(1, pick([5, 20, 20, 100])), "stp": pick(_STPS), "mpid": pick([0, 0, 0x5254_4D41]),
        }  # fmt: skip
        row["price"] = self._price(row["side"])
        self._known = [*self._known[-23:], (row["id"], row["owner"], row["locate"])]
        self._special(row)
        return row

    def _special(self, row: Row) -> None:
        """Some orders are more than a price and a quantity; a few are wrong."""
        pick, number = self.chance.pick, self.chance.number
        what = pick(_SPECIAL[self.flavour])
        if what == "iceberg":
            row |= {"kind": ord("L"), "tif": pick(b"DG"), "peak": number(1, row["qty"])}
        elif what in ("HIDDEN", "POST_ONLY", "AON"):
            row |= {"kind": ord("L"), "tif": pick(b"DG"), "flags": int(OrderFlag[what])}
        elif what == "minimum":
            row |= {"tif": ord("I"), "min_qty": number(1, row["qty"])}
        elif what == "slippage":
            row |= {"kind": ord("M"), "flags": int(OrderFlag.SLIPPAGE), "slip": number(0, self.spread)}
        elif what == "connected":
            row["flags"] = int(OrderFlag.CANCEL_ON_DISCONNECT)
        elif what == "cross":
            row |= {"tif": pick(b"OC"), "kind": pick(b"LLM")}
        elif what in ("stop", "trailing"):
            row |= {"kind": pick(b"ST"), "stop": self._price(), "tif": pick(b"DGIF")}
            if what == "trailing":
                row |= {"stop": pick([0, row["stop"]]), "trail": number(1, 6), "step": pick([0, 0, 1, 3])}
            if row["kind"] == ord("T") and row["tif"] in b"DG" and pick([0, 0, 1]):
                row |= pick([{"flags": 1}, {"flags": 2}, {"peak": 1}])
        elif what == "wrong":
            column, value = pick(_WRONG)
            row[column] = value

    def _change(self, op: Op) -> Row:
        pick, number = self.chance.pick, self.chance.number
        number_of, owner, locate = pick(self._known) if self._known else (1, 0, 1)
        row: Row = {"id": number_of, "owner": pick([owner] * 15 + [self._owner()]), "locate": locate}
        if op is Op.REDUCE:
            row["qty"] = number(0, 12)
        if op is Op.REPLACE:
            row |= {
                "price": pick([0, self._price()]), "qty": pick([0, number(1, 40)]),
                "stop": pick([0, 0, self._price()]), "trail": pick([0, 0, 0, 4]),
                "flags": pick([0, 0, 0, int(OrderFlag.IN_FLIGHT)]),
            }  # fmt: skip
            if pick([False, False, True]):
                row["id2"], self._next_id = self._next_id, self._next_id + 1
                self._known = [*self._known[-23:], (row["id2"], row["owner"], locate)]
        return row

    def _operate(self, op: Op) -> Row:
        pick = self.chance.pick
        row: Row = {"locate": self._locate(), "id": self.chance.number(0, 9)}
        if op is Op.STATE:
            row["code"] = pick(b"TTTTQQQHPX")
        elif op is Op.BAND:
            low = _MIDDLE - self.chance.number(0, self.spread)
            row |= pick([{}, {"price": low, "stop": low + self.spread}, {"price": low, "stop": low - 1}])
        elif op is Op.REFERENCE:
            row["price"] = pick([self._price(), self._price(), 0, -1])
        else:
            row["code"] = pick([*map(int, CrossType)] * 5 + [0])
        return row

    def _owner(self) -> int:
        return int(self.chance.number(0, self.owners))

    def _locate(self) -> int:
        return int(self.chance.number(1, self.locates))

    def _price(self, side: int = 0) -> int:
        """Two of three orders of a side keep to their half, and come to rest."""
        if side and self.chance.pick([True, True, False]):
            return _MIDDLE + (self.chance.number(0, self.spread) * (-1 if side == ord("B") else 1))
        return _MIDDLE + self.chance.number(-self.spread, self.spread)


_SPECIAL: Final[dict[str, tuple[str, ...]]] = {
    "plain": ("",) * 12 + ("iceberg",) * 3 + ("HIDDEN", "POST_ONLY", "minimum", "slippage"),
    "stops": ("",) * 8 + ("stop",) * 4 + ("trailing",) * 3 + ("iceberg", "HIDDEN"),
    "blocks": ("",) * 8 + ("AON",) * 6 + ("iceberg",) * 2 + ("HIDDEN", "minimum", "stop"),
    "auctions": ("",) * 8 + ("cross",) * 4 + ("iceberg", "HIDDEN", "AON", "stop", "POST_ONLY"),
    "everything": ("",) * 16
    + ("iceberg", "HIDDEN", "AON", "stop", "trailing") * 2
    + ("POST_ONLY", "minimum", "slippage", "connected", "cross", "wrong"),
}
_WRONG: Final[tuple[tuple[str, int], ...]] = (
    ("locate", 0), ("locate", 70_000), ("kind", ord("?")), ("side", 0), ("tif", 0), ("stp", 1), ("flags", 64),
    ("flags", int(OrderFlag.IN_FLIGHT)), ("qty", 0), ("qty", 1 << 60), ("peak", 1 << 40), ("min_qty", 3),
    ("price", 0), ("price", -5), ("price", 1 << 40), ("trail", 3), ("op", 0), ("flags", 6), ("ts", 0),
)  # fmt: skip


def to_commands(rows: Sequence[Row]) -> Commands:
    """COMMAND[n] from columns by name; what is left out is 0, an `mpid` is a number of 4 bytes."""
    commands = np.zeros(len(rows), COMMAND)
    for at, row in enumerate(rows):
        for column, value in row.items():
            if column == "mpid":
                value = np.frombuffer(int(value).to_bytes(4, "little"), np.uint8)
            commands[column][at] = value
    return commands


def stream(
    seed: int, n: int, flavour: str = "everything", *, locates: int = 2, owners: int = 4, spread: int = 6
) -> Commands:
    """COMMAND[n]: the same for the same arguments. Prices lie within `spread` of 10,000."""
    maker = Maker(_Seeded(seed), flavour, locates=locates, owners=owners, spread=spread)
    return to_commands([maker.one() for _ in range(n)])


def market(seed: int, *, allocation: Allocation | None = None) -> MarketRules:
    """Rules by chance; those of seed 0 are the plainest."""
    return _market(_Seeded(seed), allocation) if seed else MarketRules(allocation=allocation or "fifo")  # type: ignore[arg-type]


def _market(chance: Chance, allocation: Allocation | None = None) -> MarketRules:
    return MarketRules(
        allocation=allocation or chance.pick(list(Allocation)),
        stp=chance.pick([SelfTrade.NONE, *list(SelfTrade)[1:]]),
        ticks=chance.pick([((0, 1),), ((0, 1),), ((0, 1), (_MIDDLE, 2)), ((0, 5), (_MIDDLE - 3, 1))]),
        protection=chance.pick([0, 0, 2]),
        max_orders=chance.pick([2**20, 2**20, 2**20, 2**20, 12]),
        state=chance.pick(["T", "T", "T", "Q"]),
        first_ref=chance.pick([1, 1_000]),
    )


@st.composite
def markets(draw: Any, allocation: Allocation | None = None) -> MarketRules:
    """Rules of any market."""
    return _market(_Drawn(draw), allocation)


@st.composite
def streams(draw: Any, flavour: str = "everything", max_size: int = 40) -> Commands:
    """Short streams, which hypothesis shrinks to plain ones."""
    chance = _Drawn(draw)
    maker = Maker(chance, flavour, locates=2, owners=2, spread=3)
    return to_commands([maker.one() for _ in range(draw(st.integers(1, max_size)))])


@st.composite
def wild(draw: Any, max_size: int = 8) -> Commands:
    """Any bytes, some of them with columns that make sense."""
    n = draw(st.integers(1, max_size))
    raw = draw(st.binary(min_size=n * COMMAND.itemsize, max_size=n * COMMAND.itemsize))
    commands = np.frombuffer(raw, COMMAND).copy()
    for at in range(n):
        if draw(st.booleans()):
            commands["op"][at] = draw(st.sampled_from([int(op) for op in Op]))
            commands["locate"][at] = draw(st.integers(0, 3))
            commands["side"][at] = draw(st.sampled_from(b"BS"))
            commands["kind"][at] = draw(st.sampled_from(b"LMST"))
            commands["tif"][at] = draw(st.sampled_from(b"DGIFOC"))
            commands["flags"][at] = draw(st.integers(0, 63))
            commands["stp"][at] = 0
            for column in ("qty", "price", "peak", "min_qty", "stop", "trail", "step", "slip"):
                commands[column][at] = draw(st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1]))
    return commands
