"""What opening a store for writing would do, told without doing it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from trident_core.contracts import Finding
from trident_store.filesystem import FileSystem
from trident_store.format import MARK_NAME, is_spare, segment_name, segment_number
from trident_store.lsm.jobs import find_job
from trident_store.lsm.layout import manifest_name
from trident_store.survey import survey
from trident_store.tableset import leftovers

_SPILL = ".spill"


class Step(NamedTuple):
    """One thing that opening does to a file."""

    file: str
    what: str


@dataclass(slots=True)
class Opening:
    """The events there would be, the steps to get there, and the damage that makes opening refuse."""

    events: int = 0
    last_seq: int = 0
    torn_bytes: int = 0
    steps: list[Step] = field(default_factory=list)
    refused: list[Finding] = field(default_factory=list)
    unfinished: bool = False


def opening(files: FileSystem, folder: Path) -> Opening:
    """Changes nothing. Raises StoreError when there is no store, or one of another version."""
    found = survey(files, folder, payloads=True)
    result = Opening(found.end.ordinal, found.end.last_seq, found.torn_bytes, unfinished=found.unfinished)
    result.refused = [each for each in found.findings if each.severity == "error"]
    if result.refused or found.unfinished:
        return result
    steps = [Step(MARK_NAME, f"rewrite slot {slot} from the other one") for slot in found.mark.bad_slots]
    for tear in found.tears:
        name = segment_name(tear.number)
        cut = f"cut {tear.size} bytes behind offset {tear.offset}: a torn tail, never acknowledged"
        steps.append(Step(name, cut if tear.offset else "remove: a segment that was just being begun"))
    mark = found.mark.at
    if mark is not None and found.end.place != mark.place:
        more = found.end.ordinal - mark.ordinal
        steps.append(
            Step(segment_name(found.end.segment), f"keep and make durable {more} events behind the mark")
        )
    if any(each.file == manifest_name(found.manifest.place[0]) for each in found.findings):
        steps.append(
            Step(
                manifest_name(found.manifest.place[0] + 1),
                "a new manifest, for the old one has a torn record",
            )
        )
    names = files.list_directory(folder)
    steps += [
        Step(name, "remove: a segment's file that waits to be used again") for name in names if is_spare(name)
    ]
    job = find_job(files, folder, found.store_id, found.manifest)
    left = sorted(leftovers(names, found.manifest, job.number if job else None))
    steps += [Step(name, "remove: an interrupted step left it, nothing names it") for name in left]
    for name in sorted(names):
        number = segment_number(name)
        if number is not None and number < found.manifest.log.segment:
            steps.append(Step(name, "remove: its events are in tables"))
        elif name.endswith(_SPILL):
            steps.append(Step(name, "append what continues the store, then remove"))
    epoch = max(mark.epoch if mark is not None else 0, found.end.epoch) + 1
    steps.append(Step(MARK_NAME, f"begin epoch {epoch}, durable up to seq {found.end.last_seq}"))
    result.steps = steps
    return result
