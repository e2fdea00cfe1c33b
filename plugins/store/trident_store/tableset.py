"""The tables of a store, as its manifest names them: opened, kept open, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trident_core.contracts import Finding
from trident_core.errors import DamagedStoreError
from trident_store.filesystem import FileSystem
from trident_store.lsm.layout import file_number
from trident_store.lsm.manifest import Entry, Manifest, read_manifest, unreadable
from trident_store.tables import Table, finding_of


class TableCache:
    """Open tables, so that what was checked once is not checked again. `make` is the class of a table, `walk`
    makes a `logscan.Walker` of (files, handle, segment, its bytes, store id)."""

    def __init__(
        self, files: FileSystem, folder: Path, make: type[Table] = Table,
        walk: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        self._files, self._folder, self._make, self.walk = files, folder, make, walk
        self._open: dict[tuple[bytes, Entry], Table] = {}

    def open(self, store_id: bytes, entry: Entry) -> Table:
        """Raises DamagedStoreError, OSError."""
        key = (store_id, entry)
        if key not in self._open:
            self._open[key] = self._make(self._files, self._folder, store_id, entry)
        return self._open[key]

    def keep(self, entries: Iterable[Entry]) -> None:
        """Let go of all other tables; snapshots that use them keep them alive."""
        kept = set(entries)
        self._open = {key: table for key, table in self._open.items() if key[1] in kept}


@dataclass(slots=True)
class TableSet:
    """What was found: the state in force and its tables, up to the first that could not be opened."""

    manifest: Manifest = field(default_factory=Manifest)
    tables: list[Table] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    bytes: int = 0

    @property
    def damaged(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)


def look_at_tables(
    files: FileSystem, folder: Path, store_id: bytes, cache: TableCache, *, every_byte: bool,
    forget: bool = False,
) -> TableSet:  # fmt: skip
    """Read the manifest (`forget`: from the disk, not the cache) and open its tables. Raises StoreError for
    another version, OSError."""
    result = TableSet()
    state = read_manifest(files, folder, store_id, forget=forget)
    if isinstance(state, Finding):
        result.findings.append(state)
        return result
    result.manifest = state
    if every_byte:
        result.findings += unreadable(files, folder, store_id, state)
    for entry in state.entries:
        result.bytes += entry.nbytes
        found: list[Finding] = []
        try:
            table = cache.open(store_id, entry)
            found = list(table.findings()) if every_byte else []
            if not found and not result.damaged:
                result.tables.append(table)
        except DamagedStoreError as error:
            found = [finding_of(error)]
        except FileNotFoundError:
            found = [_lost(entry, "the table has gone")]
        except OSError as error:
            found = [_lost(entry, f"cannot be read ({error.strerror or error})")]
        result.findings += found
    cache.keep(state.entries)
    return result


def _lost(entry: Entry, problem: str) -> Finding:
    name = f"{entry.table:08d}.tab"
    return Finding(name, 0, entry.first_ordinal, entry.end_ordinal - 1, problem)


def leftovers(names: Iterable[str], state: Manifest, job: int | None = None) -> list[str]:
    """Of these file names, the tables, manifests and jobs that `state` does not need: what an interrupted
    flush, compaction or upgrade left behind. `job`: the table whose compaction is going to go on."""
    needed = {entry.table for entry in state.entries} | {job}
    result = []
    for name in names:
        table, manifest = file_number(name, "tab"), file_number(name, "man")
        other = (table is not None and table not in needed) or manifest not in (None, state.place[0])
        if other or file_number(name, "job") not in (None, job):
            result.append(name)
    return result
