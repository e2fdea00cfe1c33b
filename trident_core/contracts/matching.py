"""Matching, capability MATCH of books: commands in, reports out. docs/matching.md states every rule."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, IntFlag, StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from trident_core.errors import UsageError

if TYPE_CHECKING:  # listing plugins must not wait for numpy
    import numpy as np
    from numpy.typing import NDArray

    from trident_core.contracts.book import TradingState
    from trident_core.dtypes import Levels, Orders, Tops
    from trident_core.orders import Commands, Reports
    from trident_core.session import Session

PRICE_MAX: Final = 2**31 - 1  # of a limit, a stop, a trail: what a book must hold (BOOK rules)
QTY_MAX: Final = 2**53 - 1  # of one order, whatever `MarketRules.qty_max` says
LOCATE_MAX: Final = 65_535
#: Fewer rows than this in `reports` is misuse: one step of the engine may need them all.
REPORTS_MIN: Final = 8


class Op(IntEnum):
    """COMMAND.op: what is asked for."""

    NEW = ord("N")
    REPLACE = ord("R")
    REDUCE = ord("X")  # by `qty`
    CANCEL = ord("C")
    MASS_CANCEL = ord("M")  # all of `owner`; of one symbol with `locate`, of one side with `side`
    DISCONNECT = ord("D")  # those of `owner` that asked for it
    STATE = ord("S")  # of the symbol: `code` is a TradingState
    BAND = ord("B")  # of the symbol: no trade below `price` or above `stop`; 0, 0 lifts it
    REFERENCE = ord("F")  # of the symbol: `price` decides between equal prices of a cross
    INDICATE = ord("I")  # what a cross of type `code` would do now
    UNCROSS = ord("U")  # the cross of type `code`
    END_OF_DAY = ord("E")  # orders that are not GTC expire; of one symbol with `locate`


class OrderKind(IntEnum):
    """COMMAND.kind of a NEW."""

    LIMIT = ord("L")
    MARKET = ord("M")
    STOP = ord("S")  # a market order once triggered; with `trail`, trailing
    STOP_LIMIT = ord("T")  # a limit order once triggered; with `trail`, trailing


class TimeInForce(IntEnum):
    """COMMAND.tif of a NEW."""

    DAY = ord("D")
    GTC = ord("G")
    IOC = ord("I")
    FOK = ord("F")
    ON_OPEN = ord("O")  # for the opening cross only
    ON_CLOSE = ord("C")  # for the closing cross only


class OrderFlag(IntFlag):
    """Bits of COMMAND.flags."""

    POST_ONLY = 1
    HIDDEN = 2
    AON = 4
    CANCEL_ON_DISCONNECT = 8
    SLIPPAGE = 16  # MARKET, STOP: `slip` counts, also when it is 0
    IN_FLIGHT = 32  # REPLACE: `qty` includes what the order has filled already


class SelfTrade(IntEnum):
    """COMMAND.stp, MarketRules.stp: what happens where an order meets one of its owner."""

    DEFAULT = 0  # the rules' (of the rules: NONE)
    NONE = ord("N")
    INCOMING = ord("I")  # the incoming order's rest is cancelled
    RESTING = ord("R")  # the resting order is cancelled, matching goes on
    BOTH = ord("B")
    DECREMENT = ord("D")  # both lose what they would have traded


class CrossType(IntEnum):
    """COMMAND.code of UNCROSS and INDICATE: ITCH's letters (spec 4.5.2)."""

    OPENING = ord("O")
    CLOSING = ord("C")
    HALT = ord("H")  # after a halt, and of an IPO


class ReportKind(IntEnum):
    """REPORT.kind; which column holds what for each: docs/matching.md."""

    ACCEPTED = ord("A")
    REJECTED = ord("J")
    BOOKED = ord("B")  # rests in the book
    FILL = ord("F")
    CANCELLED = ord("C")  # some or all of it
    REPLACED = ord("U")
    REFRESHED = ord("R")  # an iceberg shows its next peak, last in the queue
    TRIGGERED = ord("T")  # a stop became an order
    CROSS = ord("X")
    INDICATIVE = ord("I")
    STATE = ord("H")
    DONE = ord("D")  # a BAND, REFERENCE, MASS_CANCEL, DISCONNECT or END_OF_DAY is through


class Reason(IntEnum):
    """REPORT.reason: of a REJECTED, then of a CANCELLED."""

    NONE = 0
    BAD_OP = 1
    BAD_KIND = 2
    BAD_SIDE = 3
    BAD_TIF = 4
    BAD_PRICE = 5  # not in 1 … PRICE_MAX where one is needed
    BAD_QTY = 6  # not in 1 … qty_max; a peak or minimum above the quantity
    BAD_COMBINATION = 7  # of kind, tif and flags (docs/matching.md, MATCH-8)
    BAD_LOCATE = 8
    BAD_CODE = 9
    TICK = 10
    BAND = 11  # also of a CANCELLED: a new band leaves it outside
    DUPLICATE_ID = 12
    UNKNOWN_ID = 13  # no such living order of this owner
    STATE = 14  # the symbol's state forbids it; also of a CANCELLED: AON orders at a call
    POST_ONLY = 15
    FULL = 16  # MarketRules.max_orders are alive
    CROSSED = 17  # trading cannot begin: the book is crossed, UNCROSS first
    USER = 32  # asked for by CANCEL or REDUCE
    MASS = 33
    DISCONNECT = 34
    EXPIRED = 35  # END_OF_DAY; what a cross left of orders that are for it alone
    IOC = 36
    FOK = 37
    MIN_QTY = 38
    NO_LIQUIDITY = 39  # a market order found nothing more
    PROTECTION = 40  # a market order reached its limit
    SELF_TRADE = 41
    IN_FLIGHT = 42  # a replace to less than was filled already


class ReportFlag(IntFlag):
    """Bits of REPORT.flags; they say what the public book sees."""

    DISPLAYED = 1  # the order `ref` stood in the public book before this row, or (BOOKED, REFRESHED) does now
    LEFT = 2  # its entry of that reference is gone with this row
    IN_PLACE = 4  # REPLACED: kept reference and priority
    RESTS = 8  # REPLACED: rests at its new place at once; no BOOKED follows
    SECOND = 16  # FILL: the other side of the row before, whose order rested too
    CROSS = 32  # FILL: of an auction


class Allocation(StrEnum):
    """How an incoming order is shared out among the orders at one price."""

    FIFO = "fifo"
    PRO_RATA = "pro_rata"
    SIZE_TIME = "size_time"


@dataclass(frozen=True, slots=True)
class MarketRules:
    """The rules of a market, the same for all of its symbols. Raises UsageError for values out of range.

    `ticks`: (from price, tick) by ascending price, the first from 0; a price must be a multiple of its tick.
    `protection`: how far from the touch a market order may go, 0 for no limit. `state`: of symbols without a
    STATE yet, "T" or "Q". `max_orders`: how many may be alive, in books and waiting; times
    `qty_max` it is less than 2^63, so that no sum of quantities overflows.
    """

    allocation: Allocation = Allocation.FIFO
    stp: SelfTrade = SelfTrade.NONE
    ticks: tuple[tuple[int, int], ...] = ((0, 1),)
    protection: int = 0
    qty_max: int = 2**32 - 1
    max_orders: int = 2**22
    state: str = "T"
    first_ref: int = 1
    first_match: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "allocation", Allocation(self.allocation))
        object.__setattr__(self, "stp", SelfTrade(self.stp))
        starts = [start for start, _ in self.ticks]
        if not starts or starts[0] != 0 or sorted(set(starts)) != starts or len(starts) > 64:
            raise UsageError(
                f"ticks: (from price, tick) by ascending price, the first from 0, not {self.ticks}"
            )
        if any(not 1 <= tick <= PRICE_MAX for _, tick in self.ticks):
            raise UsageError(f"a tick is 1 to {PRICE_MAX}, not as in {self.ticks}")
        for name, low, high in (
            ("protection", 0, PRICE_MAX), ("qty_max", 1, QTY_MAX), ("max_orders", 1, 2**26),
            ("first_ref", 1, 2**62), ("first_match", 1, 2**62),
        ):  # fmt: skip
            if not low <= getattr(self, name) <= high:
                raise UsageError(f"{name} is {low} to {high}, not {getattr(self, name)}")
        if self.qty_max * self.max_orders >= 2**63:
            raise UsageError(
                f"{self.max_orders} orders of up to {self.qty_max} are more than 64 bits hold",
                hint="qty_max times max_orders must be less than 2^63",
            )
        if self.state not in ("T", "Q"):
            raise UsageError(f"a market begins in state T or Q, not {self.state!r}")


class Submitted(NamedTuple):
    """What one `submit` did: commands taken, rows of `reports` written, and whether the last command taken
    has more to report: then call again, with the commands that were not taken (there may be none)."""

    taken: int
    written: int
    more: bool


class Matcher(Protocol):
    """Commands -> reports, and the books they make. Capability MATCH of a book engine: its factory has a
    class method `matcher(session: Session, rules: MarketRules) -> Matcher`. Rules: docs/matching.md.

    Deterministic: the same commands give the same reports, whatever the batches and the room for reports.
    Reading methods show the public book (displayed quantities, public references), as `contracts.Book` does.
    """

    session: Session
    rules: MarketRules

    def submit(self, commands: Commands, reports: Reports) -> Submitted:
        """Carry out commands in order; write what they did.

        `commands`: COMMAND[n], read only. `reports`: REPORT[m]. A command that is wrong in any way is
        answered by REJECTED; none raises. When the room ends within a command, it goes on in the next call.
        Raises UsageError for fewer than REPORTS_MIN rows.
        """
        ...

    def top(self, locate: int) -> Tops:
        """TOP[1]: the displayed touch; seq is that of the last report on the symbol, ts of its command."""
        ...

    def levels(self, locate: int, side: str, n: int = 0) -> Levels:
        """LEVEL[k]: the best n displayed levels of side "B" or "S", best first; n = 0 means all."""
        ...

    def orders(self, locate: int) -> Orders:
        """ORDER[k]: displayed orders with what they show, bids from best to worst, then asks; queue order."""
        ...

    def state(self, locate: int) -> TradingState:
        """Trading state of the symbol."""
        ...

    def locates(self) -> NDArray[np.uint32]:
        """Locates that a command which was not rejected has named, ascending."""
        ...

    def live_orders(self) -> int:
        """Orders alive: displayed, hidden, all-or-none, stops and those that wait for a cross."""
        ...

    def digest(self) -> bytes:
        """SHA-256 as of `contracts.Book.digest`, over the displayed orders: that of any book which replays
        the published events."""
        ...

    def state_digest(self) -> bytes:
        """SHA-256 over all that decides what comes next (MATCH_ROW, MATCH_SYMBOL): docs/matching.md."""
        ...

    def validate(self) -> list[str]:
        """Check every invariant; the list of violations, empty when sound. Slow."""
        ...


class MatchingBook(Protocol):
    """Capability MATCH: what the factory of such a book has besides `contracts.Book`."""

    @classmethod
    def matcher(cls, session: Session, rules: MarketRules) -> Matcher:
        """A market without orders yet. Shares nothing that changes with books or other markets."""
        ...
