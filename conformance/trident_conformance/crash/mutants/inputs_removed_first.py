"""Segments of a flush and inputs of a compaction are deleted before the manifest is durable."""

from typing import Any

from trident_conformance.crash.mutants import Patch
from trident_conformance.crash.trials import cut
from trident_store.crashmodel import CrashFileSystem
from trident_store.format import segment_name
from trident_store.lsm.maintenance import Maintenance
from trident_store.writer import LogWriter

STORE = "lsm"
TRIAL = cut("a30 s a16 s", per_point=8)


def plant(patch: Patch) -> None:
    def publish(self: Any, tables: Any, log: Any, *rest: Any) -> None:
        files = self._files
        sealed, old = self._home.state()[:2]
        kept = {table.name for table in tables}
        for name in [table.name for table in old if table.name not in kept]:
            files.remove(self._folder / name)
        for extent in sealed:
            if extent.number < log.segment:
                files.remove(self._folder / segment_name(extent.number))
        files.sync_directory(self._folder)
        published(self, tables, log, *rest)

    def remove(self: Any, path: Any) -> None:
        if path.name in self.visible():
            removed(self, path)

    published = patch.set(Maintenance, "_publish", publish)
    removed = patch.set(CrashFileSystem, "remove", remove)
    patch.set(LogWriter, "retire", lambda self, segment: None)
