"""`trident repair STORE`: what can be proven is put back."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import coloured, emit, progress, table
from trident_core.errors import StoreError
from trident_store.commands.common import bytes_told, engine_of, place, require_portable

if TYPE_CHECKING:
    from rich.console import Console


def repair(
    store: common.StorePath,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell; change nothing.")] = False,
    engine: common.StoreName = None,
    json: common.Json = False,
) -> None:
    """Rebuild a lost manifest from the tables' footers, an index or a filter from the events, a header of the
    log from its place: only where a CRC that was recorded elsewhere proves the result, byte for byte.

    What is replaced is kept as NAME.replaced. Exits with 4 when damage is left.
    """
    spec = engine_of(store, engine)
    require_portable(spec, store, "repair", f"use {spec.name}'s own tools, or `trident salvage`")
    from trident_store.filesystem import OsFileSystem
    from trident_store.tools.repair import repair as run

    with progress("repairing", unit="bytes", quiet=json, start="reading every byte") as advance:
        done = run(OsFileSystem(), store, dry_run=dry_run, advance=bytes_told(advance))
    data = {
        "store": str(store),
        "dry_run": dry_run,
        "fixes": [{"file": each.file, "what": each.what, "proof": each.proof} for each in done.fixes],
        "kept": done.kept,
        "left": [asdict(each) | {"place": place(each)} for each in done.left],
        "ok": done.after.ok,
        "findings": [asdict(each) | {"place": place(each)} for each in done.after.findings],
    }
    emit(data, as_json=json, render=lambda out: _render(out, data))
    if not done.after.ok and not (dry_run and done.fixes and not done.left):
        raise typer.Exit(StoreError.exit_code)


def _render(out: Console, data: dict[str, Any]) -> None:
    if data["fixes"]:
        rows = table(
            "would be put back" if data["dry_run"] else "put back", "file", "~what", "~why it is right"
        )
        for each in data["fixes"]:
            rows.add_row(each["file"], each["what"], each["proof"])
        out.print(rows)
    elif data["ok"]:
        out.print("nothing to repair")
    for name in data["kept"]:
        out.print(f"the old bytes are in {name}")
    for each in data["left"]:
        out.print(f"left: {each['place']}")
    if data["dry_run"]:
        out.print("nothing was changed")
        return
    verdict = ("sound", "green") if data["ok"] else ("damaged", "red")
    out.print(coloured((f"{data['store']} is now ", ""), verdict))
    if not data["ok"]:
        for each in data["findings"]:
            out.print(f"  {each['place']}")
        out.print("hint: `trident salvage` saves all events that are provably right into a new store")
