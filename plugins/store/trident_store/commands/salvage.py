"""`trident salvage STORE OUT`: what is provably right of a damaged store, into a new one."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import emit, number, progress, table
from trident_core.contracts import Kind
from trident_core.errors import DamagedStoreError, StoreError, UsageError
from trident_core.plugins import registry
from trident_core.stores import reading
from trident_store.commands.common import engine_of, is_portable

if TYPE_CHECKING:
    from rich.console import Console

    from trident_core.cli.output import Advance
    from trident_core.session import Session
    from trident_store.tools.salvage import Salvaged


def salvage(
    store: common.StorePath,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The folder of the new store.")],
    like: Annotated[
        Path | None, typer.Option("--like", help="A sound store of the same session, if the session is lost.")
    ] = None,
    engine: common.StoreName = None,
    to: Annotated[str | None, typer.Option("--to", help="Store engine of OUT.")] = None,
    json: common.Json = False,
) -> None:
    """Copy every event that is provably what was appended; list every gap, by sequence numbers.

    OUT has the same list in salvaged.json. Exits with 4 when anything is missing.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} exists already", hint="name a new folder")
    spec = engine_of(store, engine)
    maker = registry().select(Kind.STORE, to).load()
    with progress("salvaging", quiet=json, start="reading") as advance:
        run = _of_files if is_portable(spec) else _by_contract
        result = run(store, out, maker, spec.name, like, advance)
    data = asdict(result) | {"complete": result.complete, "out": str(out)}
    emit(data, as_json=json, render=lambda shown: _render(shown, result, out))
    if not result.complete:
        raise typer.Exit(StoreError.exit_code)


def _of_files(
    path: Path, out: Path, maker: Any, engine: str, like: Path | None, advance: Advance
) -> Salvaged:
    from trident_store.filesystem import OsFileSystem
    from trident_store.tools.salvage import Wreck, salvage, session_for, write_report

    wreck = Wreck(OsFileSystem(), path)
    session = session_for(wreck, _session_like(like))
    made = maker(out, "create", session)
    try:
        result = salvage(wreck, made, advance=lambda done, total: advance(done, total, done))
    finally:
        made.close()
    write_report(result, out)
    return result


def _session_like(like: Path | None) -> Session | None:
    if like is None:
        return None
    with reading(like) as (store, _):
        return store.snapshot().session


def _by_contract(
    path: Path, out: Path, maker: Any, engine: str, like: Path | None, advance: Advance
) -> Salvaged:
    """Of another engine's store, what a reader gets out of it before the damage."""
    from trident_core.session import Session
    from trident_store.tools.salvage import Gap, Salvaged, write_report

    result = Salvaged(source=str(path))
    with reading(path, engine) as (store, _):
        report = store.verify()
        made: Any = None
        try:
            snapshot = store.snapshot()
            result.expected = snapshot.count
            made = maker(out, "create", Session.from_json(snapshot.session.to_json()))
            for events in snapshot.scan():
                made.append(events)
                result.events += len(events)
                result.last_seq = int(events["seq"][-1])
                advance(result.events, snapshot.count, result.events)
            made.sync()
        except DamagedStoreError as error:
            why = f"{error.message}; what follows is out of reach through {engine}"
            result.gaps.append(Gap(result.last_seq + 1, report.last_seq, None, error.file, error.offset, why))
        finally:
            if made is not None:
                with contextlib.suppress(StoreError):
                    made.close()
    if made is None:
        raise StoreError(
            f"{path}: {engine} gives nothing out of it", hint=f"try {engine}'s own tools on {path / engine}"
        )
    write_report(result, out)
    return result


def _render(out: Console, result: Salvaged, path: Path) -> None:
    of = f" of {number(result.expected)}" if result.expected is not None else ""
    out.print(f"{path}: {number(result.events)}{of} events, up to seq {number(result.last_seq)}")
    if not result.gaps:
        out.print("nothing is missing" if result.complete else "events at the end are missing")
        return
    rows = table("gaps", "seq", ">events", "file", ">offset", "~why")
    for gap in result.gaps:
        seqs = f"{gap.first_seq} to {gap.last_seq or 'the end'}" if gap.first_seq else "unknown"
        rows.add_row(
            seqs, "?" if gap.events is None else number(gap.events), gap.file, str(gap.offset), gap.why
        )
    out.print(rows)
    out.print(f"the same list is in {path / 'salvaged.json'}")
