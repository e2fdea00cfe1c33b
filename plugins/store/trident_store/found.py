"""What a walk over a store's files found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from trident_core.contracts import Finding
from trident_core.errors import DamagedStoreError
from trident_core.session import Instrument, Session
from trident_store.format import MARK_NAME, MARK_SLOT_BYTES, Position, segment_name
from trident_store.lsm.manifest import Manifest
from trident_store.mark import Mark
from trident_store.tables import Table


class Extent(NamedTuple):
    """The valid bytes of one segment, its header included."""

    number: int
    end: int


class Tear(NamedTuple):
    """Bytes behind the valid prefix that a crash explains. `offset` 0: the whole segment."""

    number: int
    offset: int
    size: int


@dataclass(slots=True)
class Survey:
    """What a walk found. `end` is where the valid prefix ends; `session` is None when it cannot be read."""

    store_id: bytes
    mark: Mark
    end: Position = field(default_factory=Position)
    extents: list[Extent] = field(default_factory=list)
    session: Session | None = None
    instruments: dict[int, Instrument] = field(default_factory=dict)
    tears: list[Tear] = field(default_factory=list)
    bytes: int = 0
    findings: list[Finding] = field(default_factory=list)
    unfinished: bool = False  # creation was interrupted: no mark, no events
    manifest: Manifest = field(default_factory=Manifest)
    tables: list[Table] = field(default_factory=list)

    @property
    def torn_bytes(self) -> int:
        return sum(tear.size for tear in self.tears)

    @property
    def damaged(self) -> bool:
        return any(finding.severity == "error" for finding in self.findings)

    def raise_damage(self) -> None:
        """Raise for the first error found; do nothing when there is none."""
        for finding in self.findings:
            if finding.severity == "error":
                raise damage(finding)


def notes(found: Survey) -> list[Finding]:
    """What is worth saying of a store and costs no event: a slot of its mark that does not check, a torn
    tail."""
    result: list[Finding] = []
    mark, ordinal = found.mark.at, found.end.ordinal
    if mark is not None:
        problem = "one of the two marks does not check; the other is used, no event is affected"
        result = [
            Finding(MARK_NAME, slot * MARK_SLOT_BYTES, mark.ordinal, None, problem, "note")
            for slot in found.mark.bad_slots
        ]
    for tear in found.tears:
        problem = f"torn tail of {tear.size} bytes behind the mark; no acknowledged event is lost"
        result.append(Finding(segment_name(tear.number), tear.offset, ordinal, None, problem, "note"))
    return result


def damage(finding: Finding) -> DamagedStoreError:
    return DamagedStoreError(
        finding.problem,
        file=finding.file,
        offset=finding.offset,
        first=finding.first,
        last=finding.last,
        hint="`trident verify` lists everything that is wrong with the store",
    )
