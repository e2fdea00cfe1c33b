"""Commands for matching engines: a book of a given size that keeps its size while orders come, go and
trade."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from trident_core.contracts import Matcher
from trident_core.contracts.matching import Op, OrderKind, ReportKind, TimeInForce
from trident_core.orders import COMMAND, Commands, submit_all

MIDDLE: Final = 1_000_000
#: Prices of each side, in ticks from the touch.
DEPTH: Final = 500
OWNERS: Final = 100
QTY: Final = 100
#: Commands made at once are a share of the orders that live: few cancels come too late.
_SHARE, _CHUNK_MIN, _CHUNK_MAX = 16, 64, 4_096
#: In 1,000 commands: new orders that rest, cancels, and orders that take (IOC).
ADDS, CANCELS, TAKES = 600, 300, 100
#: Resting orders that an order takes, on average: what comes in beyond the cancels goes out again.
_TAKEN: Final = (ADDS - CANCELS) // TAKES


@dataclass
class Mix:
    """Makes commands of one symbol, and knows from `scratch`, an engine that carries them out, which live."""

    scratch: Matcher
    seed: int = 1
    live: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rng = np.random.default_rng(self.seed)
        self._places: dict[int, int] = {}  # id -> its place in `live`
        self._next = 1

    def fill(self, orders: int) -> Commands:
        """Adds until so many orders rest."""
        commands = self._adds(max(orders - len(self.live), 0))
        self._run(commands)
        return commands

    def mixed(self, n: int) -> Commands:
        """ADDS to CANCELS to TAKES in 1,000, in random order; cancels name orders that rest (but for those
        that went a moment before)."""
        parts = []
        while n > 0:
            parts.append(self._chunk(min(max(len(self.live) // _SHARE, _CHUNK_MIN), _CHUNK_MAX, n)))
            self._run(parts[-1])
            n -= len(parts[-1])
        return np.concatenate(parts)

    def takes(self, n: int, qty: int = QTY) -> Commands:
        """Orders that take, in turn from both sides, each followed by an order that fills the book up
        again."""
        commands = np.repeat(self._takes(n), 2)
        commands["qty"] = qty
        refill = commands[1::2]
        refill["id"] += 1 << 40
        refill["side"] = np.where(refill["side"] == ord("B"), ord("S"), ord("B"))
        refill["price"] = np.where(refill["side"] == ord("B"), MIDDLE - 1, MIDDLE + 1)
        refill["tif"] = int(TimeInForce.DAY)
        return commands

    # --- the commands ---------------------------------------------------------------------------------------

    def _chunk(self, n: int) -> Commands:
        kinds = self._rng.permutation(n) * 1_000 // n
        commands = np.empty(n, COMMAND)
        adds, takes = kinds < ADDS, kinds >= ADDS + CANCELS
        commands[adds] = self._adds(int(adds.sum()))
        commands[takes] = self._takes(int(takes.sum()))
        commands[~adds & ~takes] = self._cancels(n - int(adds.sum()) - int(takes.sum()))
        return commands

    def _new(self, n: int) -> Commands:
        commands = np.zeros(n, COMMAND)
        commands["op"], commands["kind"], commands["locate"] = int(Op.NEW), int(OrderKind.LIMIT), 1
        commands["id"] = np.arange(self._next, self._next + n)
        commands["owner"] = 1 + commands["id"] * 7919 % OWNERS
        commands["side"] = np.where(self._rng.random(n) < 0.5, ord("B"), ord("S"))
        commands["tif"], commands["qty"] = int(TimeInForce.DAY), QTY
        self._next += n
        return commands

    def _adds(self, n: int) -> Commands:
        commands = self._new(n)
        away = 1 + (self._rng.random(n) ** 2 * DEPTH).astype(np.int64)
        commands["price"] = np.where(commands["side"] == ord("B"), MIDDLE - away, MIDDLE + away)
        return commands

    def _takes(self, n: int) -> Commands:
        commands = self._new(n)
        commands["tif"], commands["qty"] = int(TimeInForce.IOC), QTY * _TAKEN
        commands["price"] = np.where(commands["side"] == ord("B"), MIDDLE + DEPTH, MIDDLE - DEPTH)
        return commands

    def _cancels(self, n: int) -> Commands:
        commands = np.zeros(n, COMMAND)
        commands["op"] = int(Op.CANCEL)
        if len(self.live) >= n:
            chosen = self._rng.choice(len(self.live), n, replace=False)
            commands["id"] = np.array(self.live, np.uint64)[chosen]
        commands["owner"] = 1 + commands["id"] * 7919 % OWNERS
        return commands

    # --- who lives ------------------------------------------------------------------------------------------

    def _run(self, commands: Commands) -> None:
        rows = submit_all(self.scratch, commands)
        for name in rows["id"][rows["kind"] == ReportKind.BOOKED].tolist():
            self._places[name] = len(self.live)
            self.live.append(name)
        gone = ((rows["kind"] == ReportKind.FILL) | (rows["kind"] == ReportKind.CANCELLED)) & (
            rows["leaves"] == 0
        )
        for name in rows["id"][gone].tolist():
            place = self._places.pop(name, None)
            if place is None:  # an order that took
                continue
            last = self.live.pop()
            if last != name:
                self.live[place] = last
                self._places[last] = place
