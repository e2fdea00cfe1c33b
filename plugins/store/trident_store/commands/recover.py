"""`trident recover STORE`: what opening for writing does after a crash."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import emit, number, progress, table
from trident_core.contracts import EngineSpec
from trident_core.errors import StoreError
from trident_core.stores import select_store
from trident_store.commands.common import engine_of, is_portable, place

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console


def recover(
    store: common.StorePath,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell; change nothing.")] = False,
    engine: common.StoreName = None,
    json: common.Json = False,
) -> None:
    """Do now what the next opening of STORE for writing would do: cut a torn tail off, make the rest durable,
    put what a run had spilled in its place, remove what an interrupted step left.

    Exits with 4 when STORE is damaged: opening refuses it then, and nothing is changed.
    """
    spec = engine_of(store, engine)
    with progress("recovering", quiet=json, start="reading every byte"):
        data = _told(spec, store) if dry_run or is_portable(spec) else {"steps": [], "refused": []}
        if not dry_run and not data["refused"]:
            data |= _done(spec, store)
    data |= {"store": str(store), "engine": spec.name, "dry_run": dry_run}
    emit(data, as_json=json, render=lambda out: _render(out, data))
    if data["refused"]:
        raise typer.Exit(StoreError.exit_code)


def _told(spec: EngineSpec, path: Path) -> dict[str, Any]:
    """What opening would do."""
    if is_portable(spec):
        from trident_store.filesystem import OsFileSystem
        from trident_store.tools.opening import opening

        found = opening(OsFileSystem(), path)
        return asdict(found) | {
            "steps": [each._asdict() for each in found.steps],
            "refused": [asdict(each) | {"place": place(each)} for each in found.refused],
        }
    made = select_store(path, spec.name).make(path, "read")
    try:
        report = made.verify()
        refused = [
            asdict(each) | {"place": place(each)} for each in report.findings if each.severity == "error"
        ]
        notes = [
            {"file": each.file, "what": each.problem} for each in report.findings if each.severity != "error"
        ]
        return {"events": report.events, "last_seq": report.last_seq, "steps": notes, "refused": refused}
    finally:
        made.close()


def _done(spec: EngineSpec, path: Path) -> dict[str, Any]:
    made = select_store(path, spec.name).make(path, "append")
    try:
        return {"recovery": asdict(made.recovery), **{k: made.stats()[k] for k in ("events", "last_seq")}}
    finally:
        made.close()


def _render(out: Console, data: dict[str, Any]) -> None:
    if data["refused"]:
        out.print(f"{data['store']}: damaged, opening refuses it; nothing was changed")
        for each in data["refused"]:
            out.print(f"  {each['place']}")
        out.print("hint: `trident repair` mends what can be proven; `trident salvage` saves the rest")
        return
    if data.get("unfinished"):
        out.print(f"{data['store']}: its creation was interrupted, it holds no events; remove the folder")
        return
    verb = "would hold" if data["dry_run"] else "holds"
    out.print(f"{data['store']}: {verb} {number(data['events'])} events up to seq {number(data['last_seq'])}")
    if data["steps"]:
        rows = table("what opening does" if data["dry_run"] else "what was done", "file", "~what")
        for step in data["steps"]:
            rows.add_row(step["file"], step["what"])
        out.print(rows)
