"""`trident backup STORE BACKUPS`: a checked copy, also while the store is written."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import emit, number, progress
from trident_store.commands.common import bytes_told, engine_of, is_portable

if TYPE_CHECKING:
    from trident_core.contracts import EngineSpec


def backup(
    store: common.StorePath,
    folder: Annotated[
        Path, typer.Argument(metavar="BACKUPS", help="The folder of backups; made if need be.")
    ],
    engine: common.StoreName = None,
    json: common.Json = False,
) -> None:
    """Copy what is durable in STORE now into a new numbered folder in BACKUPS, check every byte of the copy,
    then name it. What the copy before has already is linked, not copied. The same command goes on with one
    that was interrupted.
    """
    spec = engine_of(store, engine)
    with progress("copying", unit="bytes", quiet=json, start="reading") as advance:
        if is_portable(spec):
            from trident_store.tools.backup import backup as run

            made = run(store, folder, advance=bytes_told(advance))
            data: dict[str, Any] = asdict(made) | {"path": str(made.path)}
            data["files"] = len(made.files)
        else:
            data = _by_contract(spec, store, folder)
    text = f"{data['path']}: {number(data['events'])} events up to seq {number(data['last_seq'])}, verified"
    more = ", ".join(
        f"{number(data[each])} bytes {each}" for each in ("copied", "linked", "kept") if data.get(each)
    )
    emit(data, as_json=json, render=lambda out: out.print(f"{text}{'; ' if more else ''}{more}"))


def _by_contract(spec: EngineSpec, store: Path, folder: Path) -> dict[str, Any]:
    from trident_store.tools.contract_copy import copy_store, next_copy

    path = next_copy(folder)
    events, last_seq = copy_store(spec, store, path)
    return {"path": str(path), "source": str(store), "events": events, "last_seq": last_seq}
