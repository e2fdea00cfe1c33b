"""Plots with matplotlib: a book's depth over price, a symbol's spread over the day. They return the Axes."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.day.question import need
from trident_core.dtypes import Levels
from trident_core.errors import UsageError
from trident_core.session import Session, format_time

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from trident_core.day.day import Day
    from trident_core.day.snapshot import BookSnapshot

#: Up to so many changes a spread is drawn as it is; more are summed up in so many pieces of time.
CHANGES_MAX: Final = 2_000
PIECES: Final = 400
_BID, _ASK, _SPREAD = "#1a8a5a", "#c8403c", "#2f5d9b"

Floats = NDArray[np.float64]


def plot_book(book: BookSnapshot, levels: int, ax: Axes | None) -> Axes:
    """Shares that rest at a price or better, over price in dollars. Raises UsageError for levels < 1."""
    if levels < 1:
        raise UsageError(f"cannot plot {levels} levels", hint="choose 1 or more")
    ax = ax or _new_axes()
    for side, name, colour in ((book.bids, "bid", _BID), (book.asks, "ask", _ASK)):
        prices, shares = _cumulative(side[:levels], book.price_decimals)
        if len(prices):
            ax.fill_between(prices, shares, step="post", color=colour, alpha=0.2, linewidth=0)
            ax.step(prices, shares, where="post", color=colour, label=name)
    if book.mid is not None:
        ax.axvline(book.mid, color="0.5", linewidth=0.8, linestyle=":")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("price, dollars")
    ax.set_ylabel("shares at this price or better")
    ax.xaxis.set_major_formatter(f"${{x:,.{_digits(ax.get_xlim())}f}}")
    ax.yaxis.set_major_formatter("{x:,.0f}")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False)
    else:
        ax.text(0.5, 0.5, "no orders", transform=ax.transAxes, ha="center", va="center", color="0.5")
    ax.set_title(f"{book.symbol} book at {_short(book.ts)} {_zone(book.session)}")
    return ax


def plot_spread(day: Day, symbol: str, start: int, end: int, ax: Axes | None) -> Axes:
    """The spread in dollars over [start, end) of the day; gaps where a side is empty.

    Up to CHANGES_MAX changes every one is drawn; more as the time-weighted mean and the range of each of
    PIECES equal pieces of the window. Raises UsageError for an empty window.
    """
    if start >= end:
        raise UsageError("the window is empty", hint="start comes before end")
    ax = ax or _new_axes()
    times, spreads = _spreads(day, symbol, start, end)
    session = day.session
    if len(times) <= CHANGES_MAX:
        ax.step(
            _dates(np.append(times, end), session),
            np.append(spreads, spreads[-1:]),
            where="post",
            color=_SPREAD,
        )
    else:
        edges, mean, low, high = _pieces(times, spreads, start, end)
        at = _dates(edges, session)
        ax.fill_between(
            at, np.append(low, low[-1]), np.append(high, high[-1]), step="post", color=_SPREAD, alpha=0.2,
            linewidth=0, label="range",
        )  # fmt: skip
        ax.step(at, np.append(mean, mean[-1]), where="post", color=_SPREAD, label="time-weighted mean")
        _limit(ax, mean, high)
        ax.legend(frameon=False)
    _time_axis(ax, session, start, end)
    ax.set_ylabel("spread, dollars")
    ax.yaxis.set_major_formatter(f"${{x:,.{_digits(ax.get_ylim())}f}}")
    ax.set_title(f"{symbol} spread{f', {session.date}' if session.date else ''}")
    return ax


def _spreads(day: Day, symbol: str, start: int, end: int) -> tuple[Floats, Floats]:
    """Times (ns since midnight) and dollars from there on; the first at `start`, if it was known then."""
    midnight = day.session.midnight_ns()
    times, spreads = [np.zeros(0)], [np.zeros(0)]
    for rows in day.bbo(symbol, end=end):
        both = (rows["bid_ct"] > 0) & (rows["ask_ct"] > 0)
        dollars = (rows["ask_px"] - rows["bid_px"]) / 10.0**day.session.price_decimals
        times.append((rows["ts_event"] - midnight).astype(np.float64))
        spreads.append(np.where(both, dollars, np.nan))
    t, v = np.concatenate(times), np.concatenate(spreads)
    first = max(0, int(np.searchsorted(t, start, side="right")) - 1)
    t, v = t[first:], v[first:]
    return np.maximum(t, start), v


def _pieces(times: Floats, values: Floats, start: int, end: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Edges [PIECES + 1], then mean over time, least and greatest [PIECES] of a step function; NaN: never."""
    edges = np.linspace(start, end, PIECES + 1)
    there = ~np.isnan(values)
    known = np.where(there, values, 0.0)
    lasting = np.diff(np.append(times, end))
    area, length = (np.concatenate([[0.0], np.cumsum(x * lasting)]) for x in (known, there.astype(float)))
    at = np.append(times, end)
    areas, lengths = (np.diff(np.interp(edges, at, total)) for total in (area, length))
    mean, low, high = np.full(PIECES, np.nan), np.full(PIECES, np.nan), np.full(PIECES, np.nan)
    np.divide(areas, lengths, out=mean, where=lengths > 0)
    firsts = np.maximum(np.searchsorted(times, edges[:-1], side="right") - 1, 0)
    lasts = np.searchsorted(times, edges[1:], side="left")
    for n, (first, last) in enumerate(zip(firsts.tolist(), lasts.tolist(), strict=True)):
        seen = values[first:last]
        seen = seen[~np.isnan(seen)]
        if len(seen):
            low[n], high[n] = seen.min(), seen.max()
    return edges, mean, low, high


def _limit(ax: Axes, mean: Floats, high: Floats) -> None:
    """Let a few outliers run out of the top, and say so."""
    if np.isnan(mean).all():
        return
    top = max(1.3 * float(np.nanmax(mean)), float(np.nanpercentile(high, 98)))
    if float(np.nanmax(high)) > 1.5 * top:
        ax.set_ylim(min(0.0, float(np.nanmin(mean))), top)
        ax.text(
            0.01, 0.98, f"range up to ${np.nanmax(high):,.2f}", transform=ax.transAxes, va="top", color="0.4",
            fontsize="small",
        )  # fmt: skip


def _cumulative(side: Levels, decimals: int) -> tuple[Floats, Floats]:
    """Prices in dollars from best to worst, and the shares up to each."""
    return side["price"] / 10.0**decimals, np.cumsum(side["qty"]).astype(np.float64)


def _new_axes() -> Any:
    need("matplotlib", "trident-core[plot]")
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(8, 4), layout="constrained")[1]


def _digits(limits: tuple[float, float]) -> int:
    """Decimals that tell the ticks of an axis in dollars apart."""
    width = abs(limits[1] - limits[0])
    return 2 if width > 0.05 else 3 if width > 0.005 else 4


def _dates(times: Floats, session: Session) -> NDArray[np.datetime64]:
    """The session's local wall clock, as naive dates."""
    day = np.datetime64(session.date or dt.date(1970, 1, 1), "ns")
    return day + times.astype(np.int64).astype("timedelta64[ns]")


def _time_axis(ax: Axes, session: Session, start: int, end: int) -> None:
    from matplotlib import dates

    first, last = _dates(np.array([start, end], np.float64), session)
    ax.set_xlim(first, last)
    long = end - start > 10 * 60 * 10**9
    ax.xaxis.set_major_formatter(dates.DateFormatter("%H:%M" if long else "%H:%M:%S"))
    ax.set_xlabel(f"time of day, {_zone(session)}")


def _zone(session: Session) -> str:
    return f"{session.tz.rpartition('/')[2].replace('_', ' ')} time"


def _short(ts: int) -> str:
    """HH:MM:SS, with the fraction if there is one."""
    whole, _, fraction = format_time(ts).partition(".")
    return f"{whole}.{fraction.rstrip('0')}" if fraction.strip("0") else whole
