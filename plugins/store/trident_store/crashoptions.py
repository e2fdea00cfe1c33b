"""Options under which a short run of a store has all that a long one has: for the crash laboratory."""

from __future__ import annotations

from typing import Any

from trident_store.lsm.layout import Shape

_ID = bytes(range(16))  # the same in every run, so that a state can be met again


def reference() -> list[dict[str, Any]]:
    """Tiny segments, sectors and frames; frames that do not divide a segment, and larger sectors."""
    return [
        {"segment_bytes": 2_048, "sector_bytes": 512, "frame_events": 2, "store_id": _ID},
        {"segment_bytes": 1_024, "sector_bytes": 512, "frame_events": 3, "store_id": _ID},
        {"segment_bytes": 6_144, "sector_bytes": 1_024, "frame_events": 5, "store_id": _ID},
    ]


def lsm() -> list[dict[str, Any]]:
    """The same with tiny tables, merged two by two, and what a thread would do done by the caller; with
    commits by themselves, a mark that does not trail, and with the log alone."""
    tables = {"fanout": 2, "background": False, "shape": Shape(4, 8, 3), "checkpoint_events": 8}
    first, second, third = (each | tables for each in reference())
    return [
        first,
        second | {"commit": "always", "mark": "each", "spare_segments": 0},
        third | {"commit": "group", "commit_events": 7, "table_events": 40},
        first | {"tables": False},
    ]
