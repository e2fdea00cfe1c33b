"""One symbol's book at one moment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Book, TradingState
from trident_core.dtypes import Levels, Orders, Tops
from trident_core.session import Session, format_price, format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, slots=True, eq=False)
class BookSnapshot:
    """A symbol's book. Nothing in it changes: its arrays are read-only.

    `ts`: the time asked for, ns since midnight. `bids`, `asks`: LEVEL, all levels, best first. `orders`:
    ORDER, bids from best to worst, then asks, in queue order. `top`: TOP[1], with `seq` and `ts` of the
    symbol's last event (0: none). Prices are integers at `price_decimals`.
    """

    symbol: str
    locate: int
    ts: int
    bids: Levels
    asks: Levels
    orders: Orders
    top: Tops
    state: TradingState
    price_decimals: int
    session: Session

    @classmethod
    def of(cls, book: Book, session: Session, locate: int, ts: int, last: Tops) -> BookSnapshot:
        """What `book` has now; `last`: TOP[1] of the symbol's last event."""
        top = book.top(locate)
        top["seq"], top["ts"] = last["seq"], last["ts"]
        bids, asks = (_frozen(book.levels(locate, side)) for side in "BS")
        return cls(
            session.directory.symbol(locate), locate, ts, bids, asks, _frozen(book.orders(locate)),
            _frozen(top), book.state(locate), session.price_decimals, session,
        )  # fmt: skip

    @property
    def spread(self) -> int | None:
        """Best ask minus best bid, at the price's scale; None if a side is empty."""
        return (
            int(self.asks["price"][0] - self.bids["price"][0]) if len(self.bids) and len(self.asks) else None
        )

    @property
    def mid(self) -> float | None:
        """The middle of best bid and ask in currency, a float; None if a side is empty."""
        if not len(self.bids) or not len(self.asks):
            return None
        both = int(self.asks["price"][0]) + int(self.bids["price"][0])
        return both / (2.0 * 10.0**self.price_decimals)

    def plot(self, levels: int = 25, ax: Axes | None = None) -> Axes:
        """Cumulative depth over price of the best `levels` levels of each side; returns the Axes."""
        from trident_core.day.plots import plot_book

        return plot_book(self, levels, ax)

    def __repr__(self) -> str:
        bid, ask = (
            f"{format_price(int(side['price'][0]), self.price_decimals)} × {int(side['qty'][0]):,}"
            if len(side)
            else "none"
            for side in (self.bids, self.asks)
        )
        return (
            f"<book of {self.symbol or self.locate} at {format_time(self.ts)}, {self.state.name.lower()}: "
            f"bid {bid}, ask {ask}, {len(self.bids)} + {len(self.asks)} levels, {len(self.orders)} orders>"
        )

    def _repr_html_(self) -> str:
        from trident_core.day.html import book_html

        return book_html(self)


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    made = np.array(array)
    made.flags.writeable = False
    return made
