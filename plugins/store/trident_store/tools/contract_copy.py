"""Copies of stores of any engine, through the contract: a snapshot into a new store, verified."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from trident_core import digests
from trident_core.contracts import EngineSpec
from trident_core.errors import StoreError, UsageError
from trident_core.session import Session


def next_copy(folder: Path) -> Path:
    """The next numbered folder in a folder of backups, which is made if need be. Raises UsageError."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is no folder", hint="name a folder for backups")
    os.makedirs(folder, exist_ok=True)
    numbers = [int(name) for name in os.listdir(folder) if name.isdigit()]
    return folder / f"{max(numbers, default=0) + 1:08d}"


def copy_store(spec: EngineSpec, source: Path, target: Path) -> tuple[int, int]:
    """Everything that a snapshot of `source` has, in a new store of the same engine at `target`, verified:
    (events, last seq). `target` has its name only when it is whole. Raises StoreError, UsageError.
    """
    if target.exists():
        raise UsageError(f"{target} exists already", hint="name a new folder")
    work = target.with_name(f"{target.name}.partial")
    if work.exists():  # an interrupted copy of this kind cannot be gone on with
        shutil.rmtree(work)
    factory = spec.load()
    reader = factory(source, "read")
    try:
        snapshot = reader.snapshot()
        writer = factory(work, "create", Session.from_json(snapshot.session.to_json()))
        try:
            for events in snapshot.scan():
                writer.append(events)
        finally:
            writer.close()
        count, last_seq = snapshot.count, snapshot.last_seq
    finally:
        reader.close()
    check = factory(work, "read")
    try:
        report = check.verify()
    finally:
        check.close()
    if not report.ok or (report.events, report.last_seq) != (count, last_seq):
        raise StoreError(f"the copy of {source} does not verify", hint=f"it is in {work}")
    records = [each for each in digests.read_digests(source)[0] if each.events <= count]
    if records:
        digests.write_digests(work, records)
    os.rename(work, target)
    return count, last_seq
