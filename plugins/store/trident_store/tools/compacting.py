"""Compaction in the foreground: what is due, done now, with someone watching."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from trident_core.errors import StoreError
from trident_store.lsm.engine import LsmStore
from trident_store.lsm.maintenance import Settings, due
from trident_store.lsm.manifest import Entry

_LOOK_S = 0.1


@dataclass(slots=True)
class Compacted:
    """What was done: tables before and after, bytes written to them."""

    tables_before: int
    tables_after: int
    segments_before: int
    segments_after: int
    flushed_bytes: int
    compacted_bytes: int
    bytes_before: int
    bytes_after: int
    seconds: float


def expected_bytes(entries: list[Entry], log_events: int, settings: Settings) -> int:
    """About how many bytes are going to be written: a table of what is in the log, then every merge due."""
    line, total = list(entries), 0
    if log_events:
        end = line[-1].end_ordinal if line else 0
        line.append(Entry(0, 0, 0, 0, end, log_events, 0, 0, log_events * 82))
        total += line[-1].nbytes
    while (chosen := due(line, settings)) is not None:
        first, end = chosen
        some = line[first:end]
        made = some[0]._replace(
            level=some[0].level + 1, count=sum(e.count for e in some), nbytes=sum(e.nbytes for e in some)
        )
        line[first:end] = [made]
        total += made.nbytes
    return total


def compact(
    folder: Path, *, fanout: int = 8, bytes_per_s: int = 0, advance: Callable[[int, int], None] | None = None
) -> Compacted:
    """Put the log into tables and merge all that is due. `advance` is told (bytes written, about how many).

    Interrupted, the store is as valid as before. Raises StoreError when it cannot be opened, is being written
    by another process, or the disk refuses.
    """
    began = time.perf_counter()
    with LsmStore(folder, "append", fanout=fanout, compaction_bytes_per_s=bytes_per_s, tables=True) as store:
        before, bytes_before = store.stats(), _bytes(folder)
        total = expected_bytes(
            [table.entry for table in store._tables],
            before["events"] - store._log_start.ordinal,
            Settings(fanout=fanout),
        )
        failure: list[BaseException] = []

        def work() -> None:
            try:
                store.flush()
                store.compact()
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=work, name="trident-compact", daemon=True)
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK_S)
            if advance is not None:
                figures = store.stats()
                done = figures["flushed_bytes"] + figures["compacted_bytes"]
                advance(min(done, total), total)
        if failure:
            raise failure[0]
        after = store.stats()
        if after["maintenance_failed"]:
            raise StoreError(f"{folder}: {store.maintenance_failure}", hint="see to the disk and try again")
    return Compacted(
        before["tables"], after["tables"], before["segments"], after["segments"],
        after["flushed_bytes"], after["compacted_bytes"], bytes_before, _bytes(folder),
        time.perf_counter() - began,
    )  # fmt: skip


def _bytes(folder: Path) -> int:
    return sum(each.stat().st_size for each in os.scandir(folder) if each.is_file())
