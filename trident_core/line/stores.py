"""Opening a store for the line: with faults in its file system, and with what an earlier line had spilled."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from trident_core.contracts import Store
from trident_core.errors import StoreError, UsageError
from trident_core.filesystem import OsFileSystem
from trident_core.line.faults import Faults, faulty
from trident_core.line.spill_recovery import merge_left
from trident_core.session import Session


def open_writing(
    factory: Any, path: Path, mode: str, session: Session | None, faults: Faults | None = None
) -> Store:
    """The store at `path`, open to "create" or "append". A spill that was left is in it, whatever the engine.

    Raises what the engine raises; UsageError for faults in an engine that takes no `filesystem`.
    """
    options = {}
    if faults is not None and any(each.call != "ring" for each in faults.faults):
        if "filesystem" not in inspect.signature(factory).parameters:
            name = getattr(factory, "__name__", str(factory))
            raise UsageError(
                f"--inject: the store engine {name} takes no file system, so its disk cannot be made to fail",
                hint="ring-stall is for any store; the built-in engines take all faults",
            )
        options["filesystem"] = faulty(faults)
    store: Store = factory(path, mode, session, **options)
    if mode != "append":
        return store
    try:
        merge_left(store, OsFileSystem(), path)  # ours have done it; others need not know of spills
    except OSError as error:
        store.close()
        raise StoreError(f"cannot merge the spill of {path}: {error.strerror or error}") from error
    except BaseException:
        store.close()
        raise
    return store
