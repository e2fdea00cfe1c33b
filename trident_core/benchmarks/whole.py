"""Benchmarks of whole jobs, from a file to what a user wants of it, beside itch-book (a C++ core for Python).

The contenders are functions of this module, so that each can also be run in a process of its own, which is
how its memory is measured.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import io
import shutil
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np

from trident_core.benchmarks.setting import Setting
from trident_core.contracts import Kind
from trident_core.decode import decode
from trident_core.dtypes import TOP
from trident_core.inputs import open_input
from trident_core.measure import Comparison, compare
from trident_core.pipeline import BATCH
from trident_core.sharding import AHEAD, Work, applied

#: Simulated days have no date of their own; the peer wants one.
DATE: Final = dt.date(2019, 12, 30)


def touch(day: Path, parser: str | None, book: str | None, *, rows: bool) -> int:
    """A day file -> the touch after every message; `rows`: and from it the table bbo, in batches."""
    from trident_core.tables.quotes import bbo

    opened = open_input(str(day), parser=parser, book=book)
    assert opened.book is not None
    tops, found = np.zeros(BATCH, TOP), 0
    try:
        for events in decode(opened.feed, opened.parser, batch=BATCH):
            opened.book.apply(events, tops)
            if rows:
                found += len(bbo(events, tops[: len(events)], opened.session))
    finally:
        opened.close()
    return found


def sharded_bbo(day: Path, parser: str | None, book: str | None, *, threads: int) -> int:
    """The table bbo by several threads, its rows in the order of the feed, in batches."""
    from trident_core.sharding.merge import merge_rows
    from trident_core.tables.quotes import bbo

    opened = open_input(str(day), parser=parser, book=book, threads=threads)
    assert opened.book is not None
    work, found = Work(lambda events, tops, _: bbo(events, tops, opened.session), effects=False), 0
    try:
        events = decode(opened.feed, opened.parser, batch=2 * BATCH, kept=AHEAD + 1)  # BATCH for each thread
        for done in applied(((each, None) for each in events), opened.book, work=lambda _: work):
            found += sum(len(merge_rows(parts, "seq")) for parts in done.results)
    finally:
        opened.close()
    return found


def peer_bbo(day: Path) -> None:
    """The same rows by itch-book."""
    import itch_book

    feed = itch_book.open(str(day), date=DATE, price_type="fixed")
    for _ in feed.batches(tables=("bbo",), rows=1_000_000):
        pass


def bench_book(setting: Setting) -> list[Comparison]:
    """A day file -> best bid and offer after every message, against itch-book."""
    names = [setting.engine(kind)[0].removeprefix("trident ") for kind in (Kind.PARSER, Kind.BOOK)]
    day, engines = setting.day.path, (setting.engines.get(Kind.PARSER), setting.engines.get(Kind.BOOK))
    runs: dict[str, Callable[[], object]] = {
        "trident, touch": partial(touch, day, *engines, rows=False),
        "trident, bbo": partial(touch, day, *engines, rows=True),
        "trident, bbo, 2 threads": partial(sharded_bbo, day, *engines, threads=2),
    }
    notes = [f"trident is {' and '.join(names)}; touch: after each message; bbo: rows where it changed"]
    if find_spec("itch_book"):
        runs["itch-book, bbo"] = partial(peer_bbo, day)
    else:
        notes.append("itch-book is not installed: pip install itch-book")
    return [
        compare(
            "book (a raw file to the touch)", runs, setting.day.describe(live=True), unit="messages",
            units=setting.day.messages, rounds=setting.rounds, notes=notes, memory=True,
        )
    ]  # fmt: skip


def convert(day: Path, out: Path, parser: str | None, book: str | None, *, threads: int = 1) -> None:
    """`trident convert`: bbo and trades."""
    from trident_core.convert import ConvertOptions, run_convert

    opened = open_input(str(day), parser=parser, book=book, threads=threads)
    try:
        run_convert(opened, out, ConvertOptions())
    finally:
        opened.close()


def peer_convert(day: Path, out: Path) -> None:
    """itch2parquet, the same tables."""
    import itch_book.cli

    words = ["convert", str(day), str(out), "--price-type", "fixed", "--date", DATE.isoformat()]
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        if itch_book.cli.main(words):
            raise RuntimeError("itch2parquet failed")


def bench_convert(setting: Setting) -> list[Comparison]:
    """A gzipped day -> bbo and trades as Parquet, against itch2parquet, itch-book's own converter."""
    names = [setting.engines.get(kind) for kind in (Kind.PARSER, Kind.BOOK)]
    day = (setting.folder / f"bench-{DATE.isoformat()}.itch50.gz").absolute()
    with open(setting.day.path, "rb") as raw, gzip.open(day, "wb", compresslevel=6) as packed:
        shutil.copyfileobj(raw, packed)
    out = setting.folder.absolute()
    runs: dict[str, Callable[[], object]] = {
        "trident convert": partial(convert, day, out / "ours", *names),
        "trident convert, 2 threads": partial(convert, day, out / "sharded", *names, threads=2),
    }
    notes = []
    if find_spec("itch_book"):
        runs["itch2parquet"] = partial(peer_convert, day, out / "peer")
    else:
        notes.append("itch-book is not installed: pip install 'itch-book[cli]'")
    return [
        compare(
            "convert (gzip to bbo and trades, Parquet)", runs, setting.day.describe(live=True),
            unit="messages", units=setting.day.messages, rounds=setting.rounds, notes=notes, memory=True,
        )
    ]  # fmt: skip
