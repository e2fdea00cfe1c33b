"""Figures of a store's files: levels, sizes, amplification, and how good the filters really are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT
from trident_store.filesystem import FileSystem
from trident_store.found import Survey
from trident_store.lsm.layout import Section, bloom_places
from trident_store.survey import survey
from trident_store.tables import Table
from trident_store.tools.counting import size_of

_SAMPLE: Final = 100_000
_LOOKUPS: Final = 4_096


@dataclass(frozen=True, slots=True)
class Level:
    """The tables of one level."""

    level: int
    tables: int
    events: int
    bytes: int
    index_bytes: int


def figures(files: FileSystem, folder: Path) -> dict[str, Any]:
    """All figures, by name. Reads headers, filters and the samples it takes. Raises StoreError."""
    found = survey(files, folder, payloads=False)
    found.raise_damage()
    tables, log = found.tables, sum(extent.end for extent in found.extents)
    events = found.end.ordinal
    table_bytes = sum(table.entry.nbytes for table in tables)
    on_disk = size_of(files, folder)
    return {
        "events": events,
        "last_seq": found.end.last_seq,
        "durable_seq": found.mark.at.last_seq if found.mark.at is not None else 0,
        "epoch": found.end.epoch,
        "format": f"1.{found.mark.minor}",
        "symbols": len(found.session.directory) if found.session is not None else 0,
        "files": {"segments": len(found.extents), "tables": len(tables), "manifests": int(bool(tables))},
        "bytes": {"log": log, "tables": table_bytes, "on_disk": on_disk},
        "events_in": {"log": events - found.manifest.log.ordinal, "tables": found.manifest.log.ordinal},
        "levels": [asdict(level) for level in levels(tables)],
        "bytes_per_event": _ratio(on_disk, events),
        "amplification": {
            "space": _ratio(on_disk, events * EVENT.itemsize),
            "write": _ratio(_written(found, log), events * EVENT.itemsize),
            "read_tables_per_lookup": _lookups(tables),
        },
        "bloom": bloom(tables),
    }


def levels(tables: Sequence[Table]) -> list[Level]:
    """Tables by level, ascending."""
    result = []
    for level in sorted({table.entry.level for table in tables}):
        some = [table for table in tables if table.entry.level == level]
        blocks = sum(table.sections[Section.BLOCKS][1] for table in some)
        nbytes = sum(table.entry.nbytes for table in some)
        result.append(Level(level, len(some), sum(t.entry.count for t in some), nbytes, nbytes - blocks))
    return result


def _written(found: Survey, log: int) -> int:
    """Bytes that were written for what is there: each event once to the log, once to a table of level 0, and
    once more for each level above."""
    total = log
    for table in found.tables:
        total += table.entry.count * EVENT.itemsize + table.entry.nbytes * (table.entry.level + 1)
    return total


def bloom(tables: Sequence[Table]) -> dict[str, float]:
    """The filters' false positives, measured with references that no table names."""
    asked = passed = bits = entries = 0
    rng = np.random.default_rng(1)
    for table in tables:
        low, high = int(table.footer["min_ref"]), int(table.footer["max_ref"])
        bits += len(table.bloom) * 64
        entries += len(table.refs)
        if high <= low:
            continue
        sample = rng.integers(low, high, _SAMPLE, dtype=np.uint64, endpoint=True)
        absent = sample[~_has(table, sample)]
        asked += len(absent)
        passed += int(may_have(table, absent).sum())
    return {
        "asked": asked,
        "false_positives": passed,
        "rate": _ratio(passed, asked, 6),
        "bits_per_entry": _ratio(bits, entries),
    }


def _has(table: Table, refs: NDArray[np.uint64]) -> NDArray[np.bool_]:
    at = np.minimum(np.searchsorted(table.refs, refs), max(len(table.refs) - 1, 0))
    found: NDArray[np.bool_] = table.refs[at] == refs
    return found


def may_have(table: Table, refs: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """What the filter of a table says of references."""
    words = table.bloom.reshape(-1, 8)
    block, masks = bloom_places(refs, len(words))
    said: NDArray[np.bool_] = ((words[block] & masks) == masks).all(axis=1)
    return said


def _lookups(tables: Sequence[Table]) -> float:
    """How many tables are opened, on average, to find an order: those whose filter lets it pass."""
    if not any(len(table.refs) for table in tables):
        return 0.0
    rng = np.random.default_rng(2)
    weights = np.array([len(table.refs) for table in tables], float)
    chosen = rng.choice(len(tables), _LOOKUPS, p=weights / weights.sum())
    refs = np.array([tables[t].refs[rng.integers(len(tables[t].refs))] for t in chosen], np.uint64)
    opened = sum(
        int(
            (
                may_have(table, refs) & (refs >= table.footer["min_ref"]) & (refs <= table.footer["max_ref"])
            ).sum()
        )
        for table in tables
    )
    return _ratio(opened, len(refs))


def _ratio(part: float, whole: float, digits: int = 3) -> float:
    return round(part / whole, digits) if whole else 0.0
