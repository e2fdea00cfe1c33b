"""`trident run FILE STORE`: the whole line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import emit, print_notices, progress, render_run
from trident_core.contracts import Kind, Store
from trident_core.digests import DigestRecord, record_digest
from trident_core.errors import UsageError
from trident_core.inputs import Opened, open_input
from trident_core.plugins import registry
from trident_core.stores import select_store

if TYPE_CHECKING:
    from pathlib import Path

    from trident_core.cli.output import Advance
    from trident_core.dtypes import Events
    from trident_core.pipeline import Observer
    from trident_core.stats import RunStats


def run(
    file: common.Input,
    store: common.StorePath,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a STORE that an earlier run of FILE began.")
    ] = False,
    feed: common.FeedName = None,
    parser: common.ParserName = None,
    book: common.BookName = None,
    engine: common.StoreName = None,
    date: common.Date = None,
    lenient: common.Lenient = False,
    port: common.Port = None,
    threads: common.Threads = 1,
    json: common.Json = False,
) -> None:
    """Drive FILE through feed, parser, book and ring into STORE, a folder that must not exist yet.

    Ctrl-C leaves a valid store; `--resume` goes on from there, with the same FILE only.
    """
    opened = open_input(
        file, feed=feed, parser=parser, book=book, date=common.parse_date(date), lenient=lenient, port=port,
        threads=threads,
    )  # fmt: skip
    with progress("running", quiet=json) as advance:
        stats = run_line(opened, store, engine=engine, resume=resume, advance=advance)
    print_notices(stats)
    emit(stats.to_json(), as_json=json, render=lambda out: render_run(out, stats))
    if stats.interrupted:
        raise typer.Exit(130)


def run_line(
    opened: Opened,
    path: Path,
    *,
    engine: str | None,
    resume: bool,
    advance: Advance | None = None,
    observer: Observer | None = None,
) -> RunStats:
    """Run the whole line into the store at `path`, closing input and store."""
    from trident_core.pipeline import Line, LineOptions

    there = path.is_dir() and resume
    selection = select_store(path, engine) if there else registry().select(Kind.STORE, engine)
    opened.engines["store"] = selection.spec.name
    try:
        with open_store(path, selection.load(), opened, resume=resume) as store:
            options = LineOptions(
                resume_after=store.stats()["last_seq"], resume_event=_last_event(store),
                in_step=observer is not None,
            )  # fmt: skip
            line = Line(
                opened.feed, opened.source, opened.parser, opened.book, store,
                options=options, progress=advance, observer=observer,
            )  # fmt: skip
            stats = line.run()
            _record(path, store, stats, opened.engines.get("book", ""))
    finally:
        opened.close()
    opened.tell(stats)
    return stats


def _record(path: Path, store: Store, stats: RunStats, book: str) -> None:
    """Put the book's digest beside the events that made it, if the store ends where the book does."""
    figures = store.stats()
    exact = sum(stats.counts.values()) == figures["events"]  # what was skipped was counted, but is no event
    counts = stats.counts if exact else {}
    if stats.digest and stats.durable_seq == figures["last_seq"] == stats.last_seq:
        record_digest(
            path,
            DigestRecord(
                events=figures["events"],
                last_seq=stats.last_seq,
                digest=stats.digest,
                live_orders=stats.live_orders,
                counts=counts,
                book=book,
            ),
        )


def _last_event(store: Store) -> Events | None:
    """EVENT[1]: where the store ends; None when it is empty."""
    last = store.stats()["last_seq"]
    snapshot = store.snapshot()
    try:
        return next((events.copy() for events in snapshot.scan(seq=(last, last))), None)
    finally:
        snapshot.close()


class open_store:  # noqa: N801  # reads as a function
    """A store for writing, closed on the way out whatever happens."""

    def __init__(self, path: Path, factory: Any, opened: Opened, *, resume: bool) -> None:
        exists = path.exists() and (not path.is_dir() or any(path.iterdir()))
        if exists and not resume:
            raise UsageError(
                f"{path} exists already", hint="name a new folder, or add --resume to go on with that store"
            )
        self._store: Store = factory(path, "append" if exists else "create", opened.session)

    def __enter__(self) -> Store:
        return self._store

    def __exit__(self, *error: object) -> None:
        self._store.close()
