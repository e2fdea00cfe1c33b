"""COMMANDs and REPORTs as Python integers, and the letters of the contract without their enums."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np

from trident_core.contracts import OrderFlag, OrderKind, SelfTrade, TimeInForce, TradingState
from trident_core.orders import COMMAND, REPORT, Commands

BUY: Final = ord("B")
SELL: Final = ord("S")

LIMIT, MARKET = int(OrderKind.LIMIT), int(OrderKind.MARKET)
STOP, STOP_LIMIT = int(OrderKind.STOP), int(OrderKind.STOP_LIMIT)
DAY, GTC, IOC, FOK = (int(TimeInForce[name]) for name in ("DAY", "GTC", "IOC", "FOK"))
ON_OPEN, ON_CLOSE = int(TimeInForce.ON_OPEN), int(TimeInForce.ON_CLOSE)
POST_ONLY, HIDDEN, AON = int(OrderFlag.POST_ONLY), int(OrderFlag.HIDDEN), int(OrderFlag.AON)
CANCEL_ON_DISCONNECT = int(OrderFlag.CANCEL_ON_DISCONNECT)
SLIPPAGE, IN_FLIGHT = int(OrderFlag.SLIPPAGE), int(OrderFlag.IN_FLIGHT)
TRADING, QUOTATION = int(TradingState.TRADING), int(TradingState.QUOTATION)
HALTED, PAUSED = int(TradingState.HALTED), int(TradingState.PAUSED)
NO_STP, STP_INCOMING, STP_RESTING, STP_BOTH, STP_DECREMENT = (
    int(SelfTrade[name]) for name in ("NONE", "INCOMING", "RESTING", "BOTH", "DECREMENT")
)

_SLICE: Final = 4096  # commands turned into Python integers at a time: bounds memory, changes no result


def _words(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The same layout, with the MPID read as one little-endian integer."""
    fields: Any = dtype.fields
    names = list(dtype.names or ())
    formats = ["<u4" if name == "mpid" else fields[name][0] for name in names]
    offsets = [fields[name][1] for name in names]
    return np.dtype({"names": names, "formats": formats, "offsets": offsets, "itemsize": dtype.itemsize})


COMMAND_WORDS: Final = _words(COMMAND)
REPORT_WORDS: Final = _words(REPORT)


class Command(NamedTuple):
    """The columns of COMMAND, in its order."""

    ts: int
    id: int
    id2: int
    price: int
    qty: int
    peak: int
    min_qty: int
    stop: int
    trail: int
    step: int
    slip: int
    locate: int
    owner: int
    mpid: int
    op: int
    side: int
    kind: int
    tif: int
    flags: int
    stp: int
    code: int


class Row(NamedTuple):
    """A REPORT without `seq` and `ts`, which the market writes; what is not named is 0."""

    kind: int
    locate: int
    id: int = 0
    id2: int = 0
    ref: int = 0
    ref2: int = 0
    price: int = 0
    qty: int = 0
    leaves: int = 0
    leaves2: int = 0
    owner: int = 0
    owner2: int = 0
    mpid: int = 0
    reason: int = 0
    side: int = 0
    flags: int = 0
    code: int = 0

    def columns(self, seq: int, ts: int) -> tuple[int, ...]:
        """In the order of REPORT."""
        return (
            seq, ts, self.id, self.id2, self.ref, self.ref2, self.price, self.qty, self.leaves, self.leaves2,
            self.locate, self.owner, self.owner2, self.mpid, self.kind, self.reason, self.side, self.flags,
            self.code,
        )  # fmt: skip


def commands_of(array: Commands) -> Iterator[Command]:
    """Each row as a Command."""
    for start in range(0, len(array), _SLICE):
        words = array[start : start + _SLICE].view(COMMAND_WORDS)
        yield from map(Command._make, zip(*(words[name].tolist() for name in Command._fields), strict=True))
