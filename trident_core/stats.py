"""Counts of every anomaly: nothing is dropped in silence.

Each engine owns an `Anomalies`; the line merges them into `RunStats`, which every command prints at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

#: How many positions are kept for each kind of anomaly; the count goes on.
POSITIONS_KEPT: Final = 8

#: Every anomaly a built-in engine reports: name -> what it means. Plugins may add names of their own.
KNOWN_ANOMALIES: Final[Mapping[str, str]] = {
    # feeds
    "torn_tail": "the input ends inside a message; the bytes of the partial message were left out",
    "truncated_stream": "the compressed stream ends early; what could be decompressed was used",
    "corrupt_stream": "the compressed stream is damaged; reading stopped there",
    "bytes_after_end": "bytes after the end-of-session mark were left out",
    "trailing_bytes": "bytes after the last compressed member that belong to none; left out",
    "truncated_packet": "a captured packet is shorter than its own headers say",
    "foreign_packet": "a captured packet is of another protocol and was skipped",
    "gap_messages": "messages missing between two packets, by their sequence numbers",
    "duplicate_messages": "messages that an earlier packet already carried; used once",
    "late_messages": "messages that came after their gap was given up, or before the first; left out",
    "session_changes": "the transport's session changed inside the input",
    "unnumbered_messages": "messages of packets with the sequence number 0; left out unless lenient",
    "other_stream": "messages of another stream than the one followed, or of another protocol; left out",
    "empty_message": "a message of length 0 in a packet; it takes a number, and nothing else",
    "gap_bytes": "bytes missing from a TCP stream; reading went on at the next packet that can be framed",
    # parsers
    "unknown_type": "a message of a type that ITCH 5.0 does not have; skipped by its length",
    "wrong_length": "a message whose length is not its type's; skipped by its length",
    "malformed": "bytes that cannot be framed; reading stopped there",
    "bad_line": "a line of a text format that is not one of its messages; skipped",
    "other_record": "a record of another schema among those of orders; skipped",
    "not_an_order": "a record that stands for a price level, not for an order; skipped",
    "undefined_value": "a record without the price or size that it needs; skipped",
    "no_action": "a record of the action None; nothing to do",
    "modified_unknown": "a modify of an order that was not added before; taken as an add",
    "unchanged": "a modify of neither price nor size; no event",
    "fill_apart": "a fill without a cancel or modify of as many shares; told as a cancel",
    "before_session": "a record older than the session's midnight; its time is midnight",
    "after_session": "a record later than the session's day",
    "maybe_bad_book": "a record after a gap that the recorder could not fill",
    "symbol_mismatch": "a message whose symbol is not the one that the directory has for its locate",
    # books
    "unknown_ref": "a message for an order that is not in the book; no effect",
    "duplicate_ref": "an add of a reference that is still in the book; the old order was evicted",
    "over_execution": "more was taken from an order than it had; clamped",
    "rejected_add": "an add with a side other than B or S, or with no shares; no effect",
    "not_at_head": "an execution of an order that was not first in its queue",
    "locate_mismatch": "a message whose locate is not its order's; the order's was used",
    "crossed": "the book of a symbol in continuous trading became crossed (bid above ask)",
}


@dataclass(slots=True)
class Anomaly:
    """How often something happened, and where it did the first few times."""

    count: int = 0
    positions: list[int] = field(default_factory=list)


class Anomalies(Mapping[str, Anomaly]):
    """name -> count and first positions (byte offsets for feeds and parsers, `seq` for books)."""

    def __init__(self) -> None:
        self._items: dict[str, Anomaly] = {}

    def add(self, name: str, *, at: int | None = None, count: int = 1) -> None:
        """Count `name`; keep the position `at` if it is among the first."""
        if count <= 0:
            return
        item = self._items.setdefault(name, Anomaly())
        item.count += count
        if at is not None and len(item.positions) < POSITIONS_KEPT:
            item.positions.append(int(at))

    def merge(self, other: Mapping[str, Anomaly]) -> None:
        for name, theirs in other.items():
            mine = self._items.setdefault(name, Anomaly())
            mine.count += theirs.count
            mine.positions.extend(theirs.positions[: POSITIONS_KEPT - len(mine.positions)])

    def count(self, name: str) -> int:
        """How often `name` happened; 0 if never."""
        item = self._items.get(name)
        return item.count if item else 0

    def __getitem__(self, name: str) -> Anomaly:
        return self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"Anomalies({ {name: item.count for name, item in self._items.items()} })"

    def to_json(self) -> dict[str, Any]:
        return {
            name: {"count": item.count, "first_at": list(item.positions)}
            for name, item in sorted(self._items.items())
        }


@dataclass(slots=True)
class RunStats:
    """What one run of the line did. Times in seconds by `time.perf_counter`; `*_ts` are event times in ns."""

    source: str = ""
    engines: dict[str, str] = field(default_factory=dict)
    events: int = 0
    applied: int = 0
    stored: int = 0
    counts: dict[str, int] = field(default_factory=dict)
    first_ts: int = 0
    last_ts: int = 0
    first_seq: int = 0
    last_seq: int = 0
    durable_seq: int = 0
    symbols: int = 0
    live_orders: int = 0
    digest: str = ""
    wall_s: float = 0.0
    stage_s: dict[str, float] = field(default_factory=dict)
    ring_full_waits: int = 0
    ring_full_wait_s: float = 0.0
    line: dict[str, Any] = field(default_factory=dict)  # behind the ring: mode, ladder, spill, faults
    cut: bool = False  # ended at `until`, before the end of the input
    interrupted: bool = False
    anomalies: Anomalies = field(default_factory=Anomalies)
    notices: list[str] = field(default_factory=list)  # what was done otherwise than asked; no result changes

    def to_json(self) -> dict[str, Any]:
        data = {name: getattr(self, name) for name in self.__slots__}
        data["anomalies"] = self.anomalies.to_json()
        data["events_per_s"] = round(self.events / self.wall_s) if self.wall_s else 0
        return data
