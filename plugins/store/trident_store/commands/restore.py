"""`trident restore BACKUP STORE`: a store from a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import emit, number, progress
from trident_core.errors import StoreError
from trident_core.stores import select_store
from trident_store.commands.common import bytes_told, is_portable


def restore(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="A folder of backups, or one copy in it.")],
    store: common.StorePath,
    json: common.Json = False,
) -> None:
    """Copy a backup (the newest of a folder of them) to STORE, a new folder, checking every file, then every
    byte of the whole; only then STORE has its name. The same command goes on with one that was interrupted.
    """
    from trident_store.tools.backup import LIST, copies, restore

    copy = backup
    if not (backup / LIST).is_file():
        found = copies(backup)
        numbered = sorted(each for each in backup.iterdir() if each.name.isdigit()) if backup.is_dir() else []
        if not found and not numbered:
            raise StoreError(f"{backup} is no backup", hint="name a folder that `trident backup` made")
        copy = found[-1] if found else numbered[-1]
    with progress("restoring", unit="bytes", quiet=json, start="reading") as advance:
        if (copy / LIST).is_file():
            listed, report = restore(copy, store, advance=bytes_told(advance))
            data: dict[str, Any] = {
                "events": report.events,
                "last_seq": report.last_seq,
                "bytes": report.bytes,
            }
            data["source"] = listed.source
        else:
            from trident_store.tools.contract_copy import copy_store

            spec = select_store(copy).spec
            if is_portable(spec):
                raise StoreError(f"{copy} is not complete", hint="run the backup again")
            events, last_seq = copy_store(spec, copy, store)
            data = {"events": events, "last_seq": last_seq}
    data |= {"store": str(store), "backup": str(copy)}
    line = (
        f"{store}: {number(data['events'])} events up to seq {number(data['last_seq'])} from {copy}, verified"
    )
    emit(data, as_json=json, render=lambda out: out.print(line))
