"""LOBSTER days: messages from the message file, touch and depth from the orderbook file beside it.

A book made from a message file alone lacks the orders that the file does not tell of (docs/lobster.md), so
what depends on the touch is taken from LOBSTER's own rows.
"""

from __future__ import annotations

import io
import re
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import Events
from trident_core.errors import InputError
from trident_facts.track import CLOSE_NS, LEVELS, OPEN_NS, TRACK, DepthMeter, Track, put_touch, tick_of

_MESSAGES: Final = re.compile(r"_message_(\d+)\.csv")


def is_lobster(path: str) -> bool:
    """By the protocol of the feed that recognises the bytes. Raises InputError as `open_feed` does."""
    from trident_core.feeds import open_feed

    feed, source, _ = open_feed(path)
    source.close()
    return feed.protocol == "lobster-csv"


def lobster_track(path: str, start: int | None, end: int | None) -> Track:
    """The day of a message file, or of LOBSTER's zip, with the orderbook file of the same day.

    Memory: about 200 bytes a message and 32 for each of its levels. Raises InputError when the orderbook file
    is missing, is of another day (another number of rows), or cannot be read.
    """
    from trident_parser.lobster_gaps import read_day

    session, events, _ = read_day(path)
    levels = _orderbook(path)
    if len(levels) != len(events):
        raise InputError(
            f"{path}: {len(events)} messages, but {len(levels)} rows of levels",
            hint="a LOBSTER day is a pair of files, row for row",
        )
    start, end = OPEN_NS if start is None else start, CLOSE_NS if end is None else end
    meter = DepthMeter(start, end)
    recorded = levels.shape[1] // 4
    table = levels.reshape(len(levels), recorded, 2, 2)[:, :LEVELS, ::-1]  # bids first
    ts = events["ts"].astype(np.int64)
    meter.add(
        ts, table[..., 0].transpose(0, 2, 1).astype(float), table[..., 1].transpose(0, 2, 1).astype(float)
    )
    rows = _rows(events, levels)
    rows = rows[(rows["ts"] >= start) & (rows["ts"] < end)]
    middle = float(np.median(rows["bid"])) if len(rows) else 0.0
    tick = tick_of(middle, session.price_decimals)
    depth, gaps = meter.finish(tick)
    symbol = session.directory.symbol(1)
    return Track(path, symbol, tick, start, end, rows, depth, gaps, recorded)


def _rows(events: Events, levels: NDArray[np.int64]) -> NDArray[Any]:
    wanted = np.isin(events["type"], np.frombuffer(b"AXDEPQ", np.uint8))
    rows = np.zeros(len(events), TRACK)
    for name in ("ts", "ref", "price", "qty", "side", "locate"):
        rows[name] = events[name]
    rows["paid"], rows["kind"] = events["price"], events["type"]
    put_touch(rows, levels[:, 2], levels[:, 3], levels[:, 0], levels[:, 1])
    return rows[wanted]


def _orderbook(path: str) -> NDArray[np.int64]:
    """i64[n, 4 levels]: ask price, ask size, bid price, bid size, best level first."""
    with _open_orderbook(path) as stream, io.TextIOWrapper(stream, "ascii") as text:
        try:
            return np.loadtxt(text, np.int64, delimiter=",", ndmin=2)
        except ValueError as error:
            raise InputError(f"{path}: not a LOBSTER orderbook file: {error}") from None


def _open_orderbook(path: str) -> BinaryIO:
    with suppress(zipfile.BadZipFile):
        archive = zipfile.ZipFile(path)
        found = [name for name in archive.namelist() if "_orderbook_" in name]
        if len(found) == 1:
            return archive.open(found[0])  # type: ignore[return-value]
    beside = Path(path).with_name(_MESSAGES.sub(r"_orderbook_\1.csv", Path(path).name))
    if beside == Path(path) or not beside.is_file():
        raise InputError(
            f"{path}: no orderbook file of that day",
            hint="it must lie beside the message file, raw, or in its zip",
        )
    return beside.open("rb")
