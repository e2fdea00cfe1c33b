"""The manifest names a table, durably, and then the table is synced."""

from typing import Any

from trident_conformance.crash.mutants import Patch, deaf
from trident_conformance.crash.trials import cut
from trident_store.lsm import maintenance
from trident_store.lsm.layout import table_name
from trident_store.lsm.maintenance import Maintenance
from trident_store.lsm.table_writer import write_table

STORE = "lsm"
TRIAL = cut("a30 s a16 s", per_point=12)


def plant(patch: Patch) -> None:
    write: Any = write_table

    def unsynced(files: Any, *rest: Any) -> Any:
        with deaf(files, "sync"):
            return write(files, *rest)

    def publish(self: Any, tables: Any, *rest: Any) -> None:
        published(self, tables, *rest)
        for table in tables:
            handle = self._files.open(self._folder / table_name(table.entry.table), write=True)
            self._files.sync(handle)
            self._files.close(handle)

    patch.set(maintenance, "write_table", unsynced)
    published = patch.set(Maintenance, "_publish", publish)
