"""What the commands on stores share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from trident_core.contracts import Capability, EngineSpec
from trident_core.errors import StoreError, UsageError
from trident_core.stores import select_store

if TYPE_CHECKING:
    from trident_core.cli.output import Advance
    from trident_core.contracts import Finding


def engine_of(path: Path, flag: str | None) -> EngineSpec:
    """The engine of the store at `path`. Raises StoreError when nothing is there."""
    if not path.is_dir():
        what = "is no folder" if path.exists() else "is not there"
        raise StoreError(f"there is no store at {path}: it {what}", hint="is the path right?")
    return select_store(path, flag).spec


def is_portable(spec: EngineSpec) -> bool:
    """Are the store's files those of docs/store-format.md?"""
    return Capability.PORTABLE_FORMAT in spec.capabilities


def require_portable(spec: EngineSpec, path: Path, what: str, instead: str) -> None:
    """Raises UsageError, with what there is instead, for a store whose files are another engine's."""
    if not is_portable(spec):
        raise UsageError(
            f"{path} is a store of {spec.name}, whose files Trident does not {what}", hint=instead
        )


def bytes_told(advance: Advance) -> Callable[[int, int], None]:
    """(done, total) in bytes for a progress bar."""
    return lambda done, total: advance(done, total, done)


def place(finding: Finding) -> str:
    """Where a finding is, in one line."""
    upto = "unknown" if finding.last is None else str(finding.last)
    return f"{finding.file} at {finding.offset}, events {finding.first} to {upto}: {finding.problem}"
