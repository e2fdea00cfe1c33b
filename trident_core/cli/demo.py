"""`trident demo`: the whole line, ending with answers worth looking at."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from trident_core.cli import common
from trident_core.cli.answers import Answer, DayWatch, ask, render_answers, render_watch
from trident_core.cli.output import console, emit, print_notices, program, progress, render_run
from trident_core.cli.run import run_line
from trident_core.cli.simulated import simulate_day
from trident_core.cli.verify import render_report, verify_store
from trident_core.contracts import Kind
from trident_core.errors import StoreError, UsageError
from trident_core.inputs import open_input
from trident_core.plugins import registry

#: A file of this name marks a folder that an earlier demo made, and that the next one may replace.
MARK = ".trident-demo"


def demo(
    file: Annotated[
        str | None,
        typer.Argument(metavar="[FILE]", help="A day file or a capture; without it, a simulated day."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for the day and its store.")] = Path("demo-out"),
    messages: Annotated[int, typer.Option(help="Messages of the simulated day.")] = 200_000,
    symbols: Annotated[int, typer.Option(help="Symbols of the simulated day.")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the simulated day.")] = 1,
    parser: common.ParserName = None,
    book: common.BookName = None,
    store: common.StoreName = None,
    query: common.QueryName = None,
    date: common.Date = None,
    lenient: common.Lenient = False,
    threads: common.Threads = 1,
    json: common.Json = False,
) -> None:
    """Drive a day through feed, parser, book, ring, store and query, and show what came out."""
    _make_folder(out)
    show = console()
    if file is None:
        file = str(out / "simulated-2019-12-30.itch50.gz")
        simulate_day(Path(file), messages=messages, symbols=symbols, seed=seed)
        if not json:
            show.print(f"1. simulated a day of {messages:,} messages and {symbols} symbols: {file}")
    elif not json:
        show.print(f"1. reading {file}")

    opened = open_input(
        file, parser=parser, book=book, date=common.parse_date(date), lenient=lenient, threads=threads
    )
    assert opened.book is not None
    watch = DayWatch(opened.book, opened.session)
    with progress("running", quiet=json) as advance:
        stats = run_line(opened, out / "store", engine=store, resume=False, advance=advance, observer=watch)
    print_notices(stats)
    if not json:
        show.print("2. feed → parser → book → ring → store")
        render_run(show, stats)
    report = verify_store(out / "store", store)
    if not json:
        show.print("3. reading every byte of the store back")
        render_report(show, out / "store", report)
        show.print("\n4. what the day was")
        render_watch(show, watch)
    answers = _answers(out / "store", store, query, watch)
    data = {
        "run": stats.to_json(),
        "verified": report.ok,
        "most_active": watch.to_json(),
        "answers": [{"options": a.options, "count": a.count, "seconds": a.seconds} for a in answers],
    }
    emit(data, as_json=json, render=lambda shown: render_answers(shown, str(out / "store"), answers))
    if not json:
        print(f"  {watch.suggestion(file)}{' --lenient' if lenient else ''}\n  {program()} --help")
    if stats.interrupted:
        raise typer.Exit(130)
    if not report.ok:
        raise typer.Exit(StoreError.exit_code)


def _answers(folder: Path, store: str | None, query: str | None, watch: DayWatch) -> list[Answer]:
    reader = registry().select(Kind.STORE, store).make(folder, "read")
    try:
        return ask(reader.snapshot(), registry().select(Kind.QUERY, query).make(), watch)
    finally:
        reader.close()


def _make_folder(out: Path) -> None:
    """A fresh folder; one that an earlier demo left is replaced, anything else is not touched."""
    if out.exists():
        if not (out / MARK).is_file():
            raise UsageError(
                f"{out} exists and is not an earlier demo's", hint="name another folder with --out"
            )
        shutil.rmtree(out)
    try:
        out.mkdir(parents=True)
        (out / MARK).touch()
    except OSError as error:
        raise UsageError(
            f"cannot make {out}: {error.strerror}", hint="name another folder with --out"
        ) from None
