"""`trident run FILE STORE`: the whole line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.behind import Backpressure, Behind, Inject, Pin, RingSize, Stages, StagesName
from trident_core.cli.output import emit, print_notices, progress, render_run
from trident_core.contracts import EngineSpec, Kind, Store
from trident_core.digests import DigestRecord, record_digest
from trident_core.errors import UsageError
from trident_core.inputs import Opened, open_input
from trident_core.line.spill_recovery import last_event
from trident_core.plugins import registry
from trident_core.stores import select_store

if TYPE_CHECKING:
    from pathlib import Path

    from trident_core.cli.output import Advance
    from trident_core.line.faults import Faults
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
    backpressure: Backpressure = None,
    stages: StagesName = Stages.THREADS,
    pin: Pin = None,
    inject: Inject = None,
    ring: RingSize = None,
    json: common.Json = False,
) -> None:
    """Drive FILE through feed, parser, book and ring into STORE, a folder that must not exist yet.

    Ctrl-C leaves a valid store; `--resume` goes on from there, with the same FILE only. docs/line.md tells
    what --live, --stages, --pin and --inject do.
    """
    from trident_core.line.faults import Faults
    from trident_core.line.pinning import parse_pin

    if ring is not None and (ring < 2 or ring & (ring - 1)):
        raise UsageError(f"--ring {ring}: not a power of two", hint="65536, 1048576 …")
    live = None if backpressure is None else not backpressure
    behind = Behind(stages, live, parse_pin(pin) if pin else (), tuple(inject or ()), ring or 0)
    Faults.parse(behind.inject)  # a fault that makes no sense is told before anything is opened
    opened = open_input(
        file, feed=feed, parser=parser, book=book, date=common.parse_date(date), lenient=lenient, port=port,
        threads=threads,
    )  # fmt: skip
    with progress("running", quiet=json) as advance:
        stats = run_line(opened, store, engine=engine, resume=resume, advance=advance, behind=behind)
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
    behind: Behind | None = None,
) -> RunStats:
    """Run the whole line into the store at `path`, closing input and store."""

    there = path.is_dir() and resume
    selection = select_store(path, engine) if there else registry().select(Kind.STORE, engine)
    opened.engines["store"] = selection.spec.name
    run = _in_processes if behind is not None and behind.stages == Stages.PROCESSES else _in_threads
    try:
        stats, figures = run(
            opened,
            path,
            selection.spec,
            behind or Behind(),
            resume=resume,
            advance=advance,
            observer=observer,
        )
        _record(path, figures, stats, opened.engines.get("book", ""))
    finally:
        opened.close()
    opened.tell(stats)
    return stats


def _in_threads(
    opened: Opened, path: Path, engine: EngineSpec, behind: Behind, *, resume: bool,
    advance: Advance | None, observer: Observer | None,
) -> tuple[RunStats, dict[str, int]]:  # fmt: skip
    """The run, and the store's figures at its end."""
    from trident_core.filesystem import OsFileSystem
    from trident_core.line.faults import Faults, faulty
    from trident_core.pipeline import Line, LineOptions

    faults, live = Faults.parse(behind.inject), behind.is_live(opened)
    with open_store(path, engine.load(), opened, resume=resume, faults=faults) as store:
        options = LineOptions(
            resume_after=store.stats()["last_seq"], resume_event=last_event(store),
            in_step=observer is not None, live=live, ring_capacity=behind.ring_capacity(live),
            spill_folder=path if live else None, pin=behind.pin, faults=faults,
            filesystem=faulty(faults) if faults else OsFileSystem(),
        )  # fmt: skip
        line = Line(
            opened.feed, opened.source, opened.parser, opened.book, store,
            options=options, progress=advance, observer=observer,
        )  # fmt: skip
        stats = line.run()
        return stats, store.stats()


def _in_processes(
    opened: Opened, path: Path, engine: EngineSpec, behind: Behind, *, resume: bool,
    advance: Advance | None, observer: Observer | None,
) -> tuple[RunStats, dict[str, int]]:  # fmt: skip
    """The run with the store in a process of its own, and the store's figures at its end."""
    from trident_core.line.process import ProcessWriter, StoreOrders
    from trident_core.pipeline import Line, LineOptions

    live = behind.is_live(opened)
    orders = StoreOrders(
        path, mode_for(path, resume=resume), engine.name, live=live, inject=behind.inject,
        cpu=behind.pin[1] if len(behind.pin) > 1 else None,
    )  # fmt: skip
    writer = ProcessWriter(orders, opened.session, ring_capacity=behind.ring_capacity(live))
    try:
        options = LineOptions(
            resume_after=writer.stats["last_seq"], resume_event=writer.last_event,
            in_step=observer is not None, pin=behind.pin,
        )  # fmt: skip
        line = Line(
            opened.feed, opened.source, opened.parser, opened.book, writer=writer,
            options=options, progress=advance, observer=observer,
        )  # fmt: skip
        return line.run(), writer.final
    finally:
        writer.finish()


def _record(path: Path, figures: dict[str, int], stats: RunStats, book: str) -> None:
    """Put the book's digest beside the events that made it, if the store ends where the book does."""
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


def mode_for(path: Path, *, resume: bool) -> str:
    """How the store is to be opened. Raises UsageError for one that is there and must not be gone on with."""
    exists = path.exists() and (not path.is_dir() or any(path.iterdir()))
    if exists and not resume:
        raise UsageError(
            f"{path} exists already", hint="name a new folder, or add --resume to go on with that store"
        )
    return "append" if exists else "create"


class open_store:  # noqa: N801  # reads as a function
    """A store for writing, closed on the way out whatever happens."""

    def __init__(
        self, path: Path, factory: Any, opened: Opened, *, resume: bool, faults: Faults | None = None
    ) -> None:
        from trident_core.line.stores import open_writing

        mode = mode_for(path, resume=resume)
        self._store: Store = open_writing(factory, path, mode, opened.session, faults)

    def __enter__(self) -> Store:
        return self._store

    def __exit__(self, *error: object) -> None:
        self._store.close()
