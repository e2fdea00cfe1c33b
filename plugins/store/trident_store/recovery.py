"""Opening a store for writing: a pure function of the disk, then the disk is made equal to its answer."""

from __future__ import annotations

from pathlib import Path

from trident_core.errors import StoreError
from trident_store.filesystem import FileSystem, write_all
from trident_store.format import (
    MARK_NAME,
    Position,
    encode_frame,
    is_spare,
    pad_frame,
    segment_name,
    segment_number,
)
from trident_store.found import Extent, Survey
from trident_store.lsm.jobs import find_job
from trident_store.lsm.layout import manifest_name
from trident_store.lsm.manifest import Manifest, ManifestWriter
from trident_store.mark import write_slot
from trident_store.survey import survey
from trident_store.tableset import TableCache, leftovers


def recover(
    files: FileSystem, folder: Path, sector_bytes: int, cache: TableCache, minor: int = 0
) -> tuple[Survey, Position, int, int]:
    """Check everything, cut a torn tail off, make the rest durable, begin a new epoch; then remove what
    nothing refers to. `minor`: what the store's format has to have from now on.

    Returns what was found, the end of the log, and the handles of the last segment and of the mark, which
    are the caller's to close. Raises StoreError when creation was interrupted, DamagedStoreError for damage;
    in both cases nothing was written. OSError when a write fails.
    """
    found = survey(files, folder, payloads=True, forget=True, cache=cache)
    require_finished(found, folder)
    found.raise_damage()
    mark = found.mark.at
    assert mark is not None  # a missing mark is damage
    handles: list[int] = []
    try:
        handle = files.open(folder / segment_name(found.end.segment), write=True)
        handles.append(handle)
        durable = files.open(folder / MARK_NAME, write=True)
        handles.append(durable)
        # A slot that a killed process left in the cache: durable before the other one is written.
        files.sync(durable)
        for slot in found.mark.bad_slots:  # first, so that never a slot and a tail can be torn at once
            write_slot(files, durable, slot, found.store_id, mark, found.mark.minor)
        for tear in found.tears:
            if tear.number == found.end.segment:
                # Durable before anything is written there: else a crash could bring back what followed the
                # tear, now behind sound frames.
                files.truncate(handle, found.end.offset)
                files.sync(handle)
            else:
                files.remove(folder / segment_name(tear.number))
        # What was appended but never synced counts from now on: it must be durable before the mark says so.
        end = found.end._replace(epoch=max(mark.epoch, found.end.epoch) + 1)
        pad = pad_frame(end, sector_bytes) if end.place != mark.place else None
        if pad is not None:
            write_all(files, handle, encode_frame(found.store_id, pad[0]) + pad[1], end.offset)
            end = pad[0].after()
            found.extents[-1] = Extent(end.segment, end.offset)
        files.sync(handle)
        _settle_manifest(files, folder, found)
        files.sync_directory(folder)
        for slot in (found.mark.next_slot, 1 - found.mark.next_slot):
            write_slot(files, durable, slot, found.store_id, end, found.mark.minor | minor)
        if any(finding.file == manifest_name(found.manifest.place[0]) for finding in found.findings):
            _renew_manifest(files, folder, found, end.epoch, sector_bytes)
        remove_leftovers(files, folder, found.store_id, found.manifest)
    except BaseException:
        for each in handles:
            files.close(each)
        raise
    return found, end, handle, durable


def _settle_manifest(files: FileSystem, folder: Path, found: Survey) -> None:
    """Make the state that was found durable, before what it does not name is removed: a process that was
    killed before it could sync its record left that in the cache."""
    number = found.manifest.place[0]
    if number:
        handle = files.open(folder / manifest_name(number), write=True)
        try:
            files.sync(handle)
        finally:
            files.close(handle)


def _renew_manifest(files: FileSystem, folder: Path, found: Survey, epoch: int, sector_bytes: int) -> None:
    """Put a new manifest in the place of one that holds bytes which no record accounts for."""
    writer = ManifestWriter(files, folder, found.store_id, epoch, sector_bytes)
    try:
        found.manifest = writer.publish(found.manifest.entries, found.manifest.log)
    finally:
        writer.close()


def remove_leftovers(files: FileSystem, folder: Path, store_id: bytes, state: Manifest) -> None:
    """Remove tables, manifests, segments and spare files that the state in force does not need, but for what
    a compaction can go on with. The writer's part only: a reader may have read an older state. Raises
    OSError."""
    names = files.list_directory(folder)
    job = find_job(files, folder, store_id, state)
    for name in (*leftovers(names, state, job.number if job else None), *filter(is_spare, names)):
        files.remove(folder / name)
    for number in sorted(n for n in map(segment_number, names) if n is not None):
        if number < state.log.segment:
            files.remove(folder / segment_name(number))


def require_finished(found: Survey, folder: Path) -> None:
    """Raises StoreError when the store's creation was interrupted, so that it never held an event."""
    if found.unfinished:
        raise StoreError(
            f"the store {folder} was never finished: its creation was interrupted, it holds no events",
            hint="remove the folder and create the store again",
        )
