"""Everything that can be checked of a store's files: bytes, then what the tables' indexes claim."""

from __future__ import annotations

import bisect
import contextlib
import dataclasses
import json
from pathlib import Path

from trident_core.contracts import Finding, Verification
from trident_core.errors import StoreError
from trident_store.filesystem import FileSystem
from trident_store.format import MARK_NAME, FrameKind
from trident_store.found import Survey
from trident_store.lsm.walk import Walker
from trident_store.survey import survey
from trident_store.tableset import TableCache
from trident_store.tools.counting import Advance, CountingFiles, size_of
from trident_store.tools.frames import Segment, bytes_of, segment_numbers
from trident_store.tools.table_check import TableCheck

#: What `salvage` writes beside the events that it saved.
REPORT = "salvaged.json"
_REPAIR = "`trident repair` rebuilds it from the events, if they check"
_SALVAGE = "`trident salvage` saves all other events into a new store; a backup has these, too"


def verify(files: FileSystem, folder: Path, advance: Advance) -> Verification:
    """Check every byte, then hold every index of every table against its events.

    Each finding says where in the sequence it lies, and what to do. Raises StoreError when there is no store.
    """
    try:
        total = size_of(files, folder)
    except OSError as error:
        raise StoreError(
            f"there is no store at {folder}: {error.strerror}", hint="is the path right?"
        ) from None
    counting = CountingFiles(files, total, advance)
    found = survey(counting, folder, payloads=True, cache=TableCache(counting, folder, walk=Walker))
    findings = list(found.findings)
    counting.grow(sum(table.entry.nbytes for table in found.tables))
    checked = {"bytes": found.bytes, "tables": 0, "blocks": 0, "order references": 0, "segments": 0}
    checked["segments"] = len(found.extents)
    for table in found.tables:
        findings += TableCheck(table).findings()
        counting.count(table.entry.nbytes)
        checked["tables"] += 1
        checked["blocks"] += len(table.blocks)
        checked["order references"] += len(table.refs)
    told = _told(files, folder, found, findings) + salvage_note(files, folder)
    return Verification(found.end.ordinal, found.end.last_seq, found.bytes, told, checked)


def _told(files: FileSystem, folder: Path, found: Survey, findings: list[Finding]) -> list[Finding]:
    """The findings with sequence numbers and advice."""
    if not findings:
        return findings
    anchors = _anchors(files, folder, found)
    ordinals = [ordinal for ordinal, _ in anchors]
    told = []
    for finding in findings:
        seqs = None
        if finding.last is not None:
            before = bisect.bisect_right(ordinals, finding.first)
            after = bisect.bisect_right(ordinals, finding.last)
            low = anchors[before - 1][1] if before else 1
            high = anchors[after][1] - 1 if after < len(anchors) else 0
            seqs = (low, high) if high >= low else None
        told.append(dataclasses.replace(finding, seqs=seqs, hint=advice(finding)))
    return told


def _anchors(files: FileSystem, folder: Path, found: Survey) -> list[tuple[int, int]]:
    """(ordinal, seq) of events whose place in the sequence is known, ascending; also of the end."""
    anchors: dict[int, int] = {}
    for entry in found.manifest.entries:
        anchors[entry.first_ordinal] = entry.first_seq
        anchors[entry.end_ordinal] = entry.last_seq + 1
    for table in found.tables:
        ordinals = range(table.entry.first_ordinal, table.entry.end_ordinal, table.window_events)
        anchors.update(zip(ordinals, table.windows["first_seq"].tolist(), strict=False))
    mark = found.mark.at
    if mark is not None:
        anchors[mark.ordinal] = mark.last_seq + 1
    with contextlib.suppress(OSError):
        for number in segment_numbers(files.list_directory(folder)):
            for stretch in Segment(files, folder, number).stretches(found.store_id):
                frame = stretch.frame
                if frame is not None and frame.kind == FrameKind.EVENTS:
                    anchors[frame.ordinal] = frame.first_seq
                    anchors[frame.ordinal + frame.count] = frame.last_seq + 1
    return sorted(anchors.items())


def salvage_note(files: FileSystem, folder: Path) -> list[Finding]:
    """A store that `salvage` made, and that lacks events, says so."""
    try:
        report = json.loads(bytes_of(files, folder / REPORT).tobytes())
        if report["complete"]:
            return []
        gaps, source = len(report["gaps"]), report["source"]
    except (OSError, ValueError, KeyError, TypeError):
        return []
    return [
        Finding(REPORT, 0, 0, None, f"salvaged from {source}, with {gaps} gaps: events are missing", "note")
    ]


def advice(finding: Finding) -> str:
    """What to do about a finding."""
    if finding.severity != "error":
        return "opening the store for writing mends it (`trident recover`)"
    if finding.file.endswith(".man"):
        return "`trident repair` rebuilds the manifest from the tables' footers"
    if finding.file.endswith(".tab"):
        return _SALVAGE if finding.problem.startswith("column ") else _REPAIR
    if finding.file == MARK_NAME:
        return (
            "`trident salvage` saves every event into a new store: what was durable is not known without it"
        )
    if finding.file.endswith(".seg") and "header" in finding.problem:
        return f"`trident repair` restores a header if its place proves it; else {_SALVAGE}"
    return _SALVAGE
