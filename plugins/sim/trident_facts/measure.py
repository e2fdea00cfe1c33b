"""From files to tracks: which symbols of a day, through which engines, in which hours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.decode import decode
from trident_core.dtypes import EFFECT, TOP, Events
from trident_core.errors import InputError, UsageError
from trident_core.inputs import Opened, open_input
from trident_core.tables.ladder import Ladder
from trident_facts.lobster import is_lobster, lobster_track
from trident_facts.track import CLOSE_NS, LEVELS, OPEN_NS, ROWS_MAX, DepthMeter, Track, rows_of, tick_of

#: Called with raw bytes read, all (None: unknown), and events.
Progress = Callable[[int, int | None, int], None]

BATCH: Final = 1 << 15
_BOOK: Final = np.frombuffer(b"AFXDECU", np.uint8)


@dataclass(frozen=True, slots=True)
class Options:
    """`symbols`: these; else the `busiest` ones. `start`, `end`: ns of the day; None: 09:30 to 16:00 (or
    to the last order event, if that is earlier) if the symbol has any there, else all there is. `engines`:
    for `open_input`."""

    symbols: tuple[str, ...] = ()
    busiest: int = 1
    start: int | None = None
    end: int | None = None
    engines: dict[str, Any] = field(default_factory=dict)


def tracks_of(path: str, options: Options, progress: Progress | None = None) -> list[Track]:
    """The tracks of one input, the busiest symbol first, or in the order of `options.symbols`.

    It is read twice (a LOBSTER day once). Memory: 90 bytes for each event of the symbols chosen. Raises
    UsageError for standard input, for a symbol that is not there, and for more than ROWS_MAX events of the
    symbols chosen; InputError for what cannot be read and for a day without orders.
    """
    if path == "-":
        raise UsageError("facts need to read their input twice", hint="save it to a file first")
    if is_lobster(path):
        return [lobster_track(path, options.start, options.end)]
    chosen = _choose(path, options, progress)
    return _follow(path, options, chosen, progress)


def _choose(path: str, options: Options, progress: Progress | None) -> dict[int, tuple[int, int]]:
    """locate -> the hours that are measured."""
    opened = open_input(path, with_book=False, **options.engines)
    counts, regular = np.zeros(1 << 16, np.int64), np.zeros(1 << 16, np.int64)
    span = [1 << 62, 0]
    try:
        for events in decode(opened.feed, opened.parser, batch=BATCH):
            chosen = events[np.isin(events["type"], _BOOK)]
            locates, ts = chosen["locate"].astype(np.int64), chosen["ts"].astype(np.int64)
            if len(locates) and locates.max() >= len(counts):
                counts, regular = (
                    np.append(a, np.zeros(int(locates.max()), np.int64)) for a in (counts, regular)
                )
            counts += np.bincount(locates, minlength=len(counts))
            inside = (ts >= OPEN_NS) & (ts < CLOSE_NS)
            regular += np.bincount(locates[inside], minlength=len(regular))
            if len(ts):
                span = [min(span[0], int(ts[0])), max(span[1], int(ts[-1]) + 1)]
            if progress:
                progress(*opened.source.progress(), int(counts.sum()))
    finally:
        opened.close()
    counts[0] = 0
    if not counts.any():
        raise InputError(f"{path}: no orders in it", hint="facts are measured on order-by-order feeds")
    directory = opened.session.directory
    if options.symbols:
        locates_wanted = [directory.locate(symbol) for symbol in options.symbols]
    else:
        locates_wanted = [int(k) for k in np.argsort(-counts, kind="stable")[: options.busiest] if counts[k]]
    if int(counts[locates_wanted].sum()) > ROWS_MAX:
        raise UsageError(
            f"{int(counts[locates_wanted].sum()):,} events are too many",
            hint=f"up to {ROWS_MAX:,}; choose --symbols",
        )
    hours = {}
    for locate in locates_wanted:
        usual = (OPEN_NS, min(CLOSE_NS, span[1])) if regular[locate] else (span[0], span[1])
        start = usual[0] if options.start is None else options.start
        end = usual[1] if options.end is None else options.end
        if end <= start:
            raise UsageError("no time between --from and --to", hint="give --from before --to")
        hours[locate] = (start, end)
    return hours


def _follow(
    path: str, options: Options, hours: dict[int, tuple[int, int]], progress: Progress | None
) -> list[Track]:
    opened = open_input(path, **options.engines)
    found: dict[int, list[NDArray[Any]]] = {locate: [] for locate in hours}
    meters = {locate: DepthMeter(*span) for locate, span in hours.items()}
    try:
        _read(opened, hours, found, meters, progress)
    finally:
        opened.close()
    tracks = []
    for locate, (start, end) in hours.items():
        rows = np.concatenate(found[locate]) if found[locate] else rows_of(*_nothing())
        middle = float(np.median(rows["price"][rows["price"] > 0])) if (rows["price"] > 0).any() else 0.0
        tick = tick_of(middle, opened.session.price_decimals)
        depth, gaps = meters[locate].finish(tick)
        symbol = opened.session.directory.symbol(locate) or f"locate {locate}"
        tracks.append(Track(path, symbol, tick, start, end, rows, depth, gaps))
    return tracks


def _nothing() -> tuple[Events, Any, Any]:
    from trident_core.dtypes import EVENT

    return np.zeros(0, EVENT), np.zeros(0, TOP), np.zeros(0, EFFECT)


def _read(
    opened: Opened,
    hours: dict[int, tuple[int, int]],
    found: dict[int, list[NDArray[Any]]],
    meters: dict[int, DepthMeter],
    progress: Progress | None,
) -> None:
    """All events of the chosen symbols through the book, their rows to `found`, their levels to `meters`."""
    book = opened.book
    assert book is not None
    ladder = Ladder(opened.session, LEVELS)
    tops, effects = np.zeros(BATCH, TOP), np.zeros(BATCH, EFFECT)
    wanted = np.array(sorted(hours), np.uint32)
    midnight, seen = opened.session.midnight_ns(), 0
    for batch in decode(opened.feed, opened.parser, batch=BATCH):
        seen += len(batch)
        events = batch[np.isin(batch["locate"], wanted)]
        n = len(events)
        book.apply(events, tops, effects)
        rows = rows_of(events, tops[:n], effects[:n])
        levels = ladder.apply(events, effects[:n], tops[:n])
        for locate, (start, end) in hours.items():
            mine = rows[(rows["locate"] == locate) & (rows["ts"] >= start) & (rows["ts"] < end)]
            if len(mine):
                found[locate].append(mine)
            _measure_depth(meters[locate], levels[levels["locate"] == locate], midnight)
        if progress:
            progress(*opened.source.progress(), seen)


def _measure_depth(meter: DepthMeter, levels: NDArray[Any], midnight: int) -> None:
    n = len(levels)
    prices, shares = np.zeros((n, 2, LEVELS)), np.zeros((n, 2, LEVELS))
    for k in range(LEVELS):
        for s, side in enumerate(("bid", "ask")):
            prices[:, s, k] = levels[f"{side}_px_{k:02d}"]
            shares[:, s, k] = levels[f"{side}_sz_{k:02d}"]
    meter.add(levels["ts_event"] - midnight, prices, shares)


def measure_files(
    paths: Sequence[str], options: Options, progress: Progress | None = None
) -> list[tuple[Track, dict[str, float | None]]]:
    """Every track of every input with its facts, in order. Raises what `tracks_of` raises."""
    from trident_facts.catalog import measure

    return [(track, measure(track)) for path in paths for track in tracks_of(path, options, progress)]
