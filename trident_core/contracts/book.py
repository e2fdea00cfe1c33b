"""Books: EVENTs become full L3 order books of every symbol."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:  # listing plugins must not wait for numpy
    import numpy as np
    from numpy.typing import NDArray

    from trident_core.dtypes import Effects, Events, Levels, Orders, Tops
    from trident_core.session import Session
    from trident_core.stats import Anomalies


class TradingState(IntEnum):
    """Trading state of a symbol: the wire's letter. UNKNOWN until the first H of the symbol."""

    UNKNOWN = 0
    TRADING = ord("T")
    HALTED = ord("H")
    PAUSED = ord("P")
    QUOTATION = ord("Q")


class Book(Protocol):
    """EVENTs -> full L3 order books of every symbol.

    Factory: `Book(session: Session)`. Rules: docs/contracts/book.md (each with the trap it comes from).
    References are unique in a session across symbols. `anomalies` holds positions as EVENT.seq.

    Capability SHARDED: books made by one factory share nothing that changes, so that each may be driven by a
    thread of its own at the same time, with a session that all share and another thread adds symbols to; and
    each need be given only the events of some locates: its tops, effects, readings and anomalies are then
    those that one book of all events would have for them, if no reference is used by two of the books.
    Kernels should run without the GIL: an engine that holds it is as right, and no faster.
    """

    session: Session
    anomalies: Anomalies

    def apply(self, events: Events, tops: Tops | None = None, effects: Effects | None = None) -> int:
        """Apply all events in order; return how many (always len(events)).

        With `tops` (TOP[m], m >= len(events)): tops[i] is the top of the event's symbol after event i (for a
        modify, the resting order's symbol). With `effects` (EFFECT[m]): what event i did. Never raises for
        data. Any split into batches gives the same state, tops, effects and anomalies.
        """
        ...

    def top(self, locate: int) -> Tops:
        """TOP[1]: the top now, with seq and ts of the symbol's last event (0 if it had none)."""
        ...

    def levels(self, locate: int, side: str, n: int = 0) -> Levels:
        """LEVEL[k]: the best n levels of side "B" or "S", best first; n = 0 means all."""
        ...

    def orders(self, locate: int) -> Orders:
        """ORDER[k]: all live orders: bids from best to worst, then asks; in queue order in each level."""
        ...

    def state(self, locate: int) -> TradingState:
        """Trading state by the last H of the symbol."""
        ...

    def locates(self) -> NDArray[np.uint32]:
        """Locates that have had an event that names them, ascending, 0 left out."""
        ...

    def live_orders(self) -> int:
        """How many orders rest in all books."""
        ...

    def digest(self) -> bytes:
        """SHA-256 of the canonical state: DIGEST_ROW for each live order, ascending locate, bids then asks,
        best to worst price, queue order. Two books are equal when their digests are."""
        ...

    def validate(self) -> list[str]:
        """Check every invariant; the list of violations, empty when sound. Slow; for tests and `verify`."""
        ...


@runtime_checkable
class TimedBook(Protocol):
    """Optional for books: times itself from inside, closer than a caller in Python can."""

    def time_events(self, events: Events, tops: Tops, effects: Effects, ticks: NDArray[np.int64]) -> None:
        """Apply all events, one by one, as `apply` would in batches of one: the same state, tops, effects and
        anomalies. ticks[i], of i64[n] and n = len(events): what event i took, by `trident_core.ticks`, from
        a read of the counter before it to one after it. Only called where `ticks.available()`.
        """
        ...
