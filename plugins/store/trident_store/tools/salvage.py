"""Salvage: every event of a damaged store that is provably what was appended, into a new store.

An event is proven by the CRC of its frame, or of every column of its block, in a file that names this store
and its own place. Events come in order; where some are missing a gap is told, never filled.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from trident_core.dtypes import Events
from trident_core.errors import StoreError, UsageError
from trident_core.session import Instrument, Session
from trident_store.filesystem import FileSystem
from trident_store.format import FrameKind, decode_instruments, segment_name
from trident_store.lsm.layout import Shape, file_number
from trident_store.lsm.manifest import Entry, Manifest, read_manifest
from trident_store.mark import Mark, read_mark
from trident_store.tools.counting import Advance
from trident_store.tools.frames import Segment, segment_numbers
from trident_store.tools.table_parts import TableParts
from trident_store.tools.verify import REPORT

_SLICE: Final = 1 << 16


@dataclass(slots=True)
class Gap:
    """Events that are missing between two that are there: a closed range of sequence numbers in which they
    lie, how many (None: unknown, sequence numbers may have gaps of their own), and the file that had them."""

    first_seq: int
    last_seq: int
    events: int | None
    file: str
    offset: int
    why: str


@dataclass(slots=True)
class Salvaged:
    """What was saved. `expected`: events that the mark, the manifest or a table counted; None: unknown."""

    source: str = ""
    events: int = 0
    last_seq: int = 0
    expected: int | None = None
    gaps: list[Gap] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return not self.gaps and (self.expected is None or self.events >= self.expected)


class Piece(NamedTuple):
    """Proven events in order, and where they stood: ordinal of the first, -1 if unknown. `after`: that of the
    event behind the file's last, where the file has a part only and that is known; else -1."""

    ordinal: int
    events: Events
    file: str
    offset: int
    after: int = -1


class Wreck:
    """The files of a store, damaged or not: what they prove. Raises StoreError when nothing can be read, or
    for another format version."""

    def __init__(self, files: FileSystem, folder: Path) -> None:
        self.files, self.folder = files, folder
        try:
            self.names = files.list_directory(folder)
            self.mark = read_mark(files, folder)
        except (FileNotFoundError, NotADirectoryError):
            raise StoreError(f"there is no store at {folder}", hint="is the path right?") from None
        except OSError as error:
            raise StoreError(f"cannot read the store {folder}: {error.strerror or error}") from error
        self.store_id = self._store_id(self.mark)
        self.gaps: list[Gap] = []
        self.instruments: dict[int, Instrument] = {}
        self.manifest = self._manifest()
        self.tables = self._tables()
        self.session = self._session()

    def _store_id(self, mark: Mark) -> bytes:
        """Whose files these are: the mark's say, else that of most files."""
        if mark.at is not None:
            return mark.store_id
        votes: Counter[bytes] = Counter()
        for number in segment_numbers(self.names):
            try:
                header = Segment(self.files, self.folder, number).header()
            except OSError:
                continue
            if header is not None:
                votes[header[0]] += 1
        for number in self._table_numbers():
            votes.update(_id_in_table(self.files, self.folder, number))
        if not votes:
            raise StoreError(f"{self.folder}: no file says whose it is", hint="nothing can be proven of it")
        return votes.most_common(1)[0][0]

    def _table_numbers(self) -> list[int]:
        return sorted(n for n in (file_number(name, "tab") for name in self.names) if n is not None)

    def _manifest(self) -> Manifest | None:
        try:
            state = read_manifest(self.files, self.folder, self.store_id)
        except OSError:
            return None
        return state if isinstance(state, Manifest) else None

    def _tables(self) -> list[TableParts]:
        """Every table that says it is this store's, in the order of its events, larger ones first."""
        entries = {entry.table: entry for entry in (self.manifest.entries if self.manifest else ())}
        found = []
        for number in self._table_numbers():
            try:
                parts = TableParts(self.files, self.folder, number, self.store_id, entries.get(number))
            except OSError as error:
                self._gap(entries.get(number), f"{number:08d}.tab", f"cannot be read ({error.strerror})")
                continue
            if parts.ours or parts.entry is not None:
                found.append(parts)
        for number, entry in entries.items():
            if f"{number:08d}.tab" not in self.names:
                self._gap(entry, f"{number:08d}.tab", "the table has gone")
        return sorted(found, key=lambda parts: (_first(parts), -parts.count))

    def _gap(self, entry: Entry | None, file: str, why: str) -> None:
        first, last, count = (entry.first_seq, entry.last_seq, entry.count) if entry else (0, 0, None)
        self.gaps.append(Gap(first, last, count, file, 0, why))

    def _session(self) -> Session | None:
        """The session of the newest table that has one which checks, else that of the first segment."""
        for parts in reversed(self.tables):
            data = parts.session()
            if data is not None:
                try:
                    session = Session.from_json(json.loads(data))
                except (ValueError, UsageError):
                    continue
                self.instruments.update(session.directory.as_mapping())
                return session
            self._lost_symbols(parts)
        try:
            segment = Segment(self.files, self.folder, 0)
        except OSError:
            return None
        for stretch in segment.stretches(self.store_id):
            if stretch.frame is not None and stretch.frame.kind == FrameKind.SESSION:
                payload = segment.payload(stretch.frame)
                if payload is not None:
                    try:
                        return Session.from_json(json.loads(payload.tobytes()))
                    except (ValueError, UsageError):
                        return None
        return None

    def _lost_symbols(self, parts: TableParts) -> None:
        """The directory behind a table is lost, unless another table's is the same."""
        others = [data for each in self.tables if (data := each.session()) is not None]
        if parts.footer is None or not any(parts.is_session(data) for data in others):
            why = "the symbols do not check; those of another table are used"
            self.gaps.append(Gap(0, 0, 0, parts.name, 0, why))

    def expected(self) -> int | None:
        """How many events there were at the least, by mark, manifest and tables; None: none of them tells."""
        counts = [parts.entry.end_ordinal for parts in self.tables if parts.entry is not None]
        counts += [self.manifest.log.ordinal] if self.manifest else []
        counts += [self.mark.at.ordinal] if self.mark.at is not None else []
        return max(counts, default=None)

    # -- events --

    def pieces(self) -> Iterator[Piece]:
        """Proven events, from tables, then from the log; tables may overlap what follows them."""
        entries = {entry.table: entry for entry in (self.manifest.entries if self.manifest else ())}
        found = [data for parts in self.tables if (data := parts.session()) is not None]
        sessions = list(dict.fromkeys(found))
        shapes = list(dict.fromkeys(shape for parts in self.tables for shape in _shape(parts)))
        reached = 0
        for parts in self.tables:
            end = parts.entry.end_ordinal if parts.entry is not None else None
            if end is not None and end <= reached:
                continue  # a larger one, which was whole, had them
            entry = entries.get(parts.number)
            fresh = TableParts(
                self.files, self.folder, parts.number, self.store_id, entry
            )  # let go of after it
            try:
                whole = self._whole(fresh, sessions, shapes)
                events, lost = fresh.proven(shapes) if whole is None else (whole, [])
            except OSError as error:
                self._gap(parts.entry, parts.name, f"cannot be read ({error.strerror or error})")
                continue
            if whole is not None:
                reached = end or reached
            self.gaps += [
                Gap(*block.seqs, block.events, block.file, block.offset, "events of a block do not check")
                for block in lost
            ]
            entry = parts.entry
            after = entry.first_ordinal + entry.count if whole is None and entry is not None else -1
            yield Piece(_first(parts) if whole is not None else -1, events, parts.name, 0, after)
        yield from self._log()

    def _whole(self, parts: TableParts, sessions: list[bytes], shapes: list[Shape]) -> Events | None:
        """All events of a table, when all its blocks check, or the original can be made anew."""
        events, lost = parts.proven(shapes)
        if not lost and parts.ours and len(events) == parts.count:
            return events
        if parts.original(sessions, shapes) is None or parts.entry is None:
            return None
        for shape in parts.shapes(shapes):
            found = parts.all_events(shape.block_events, parts.entry.count)
            if found is not None and int(found["seq"][0]) == parts.entry.first_seq:
                return found
        return None

    def _log(self) -> Iterator[Piece]:
        for number in segment_numbers(self.names):
            try:
                segment = Segment(self.files, self.folder, number)
            except OSError as error:
                self.gaps.append(
                    Gap(0, 0, None, segment_name(number), 0, f"cannot be read ({error.strerror})")
                )
                continue
            for stretch in segment.stretches(self.store_id):
                frame = stretch.frame
                if frame is None:
                    continue
                if frame.kind == FrameKind.DIRECTORY:
                    self._learn(segment, frame)
                events = segment.events(frame)
                if events is not None:
                    yield Piece(frame.ordinal, events, segment.name, frame.offset)

    def _learn(self, segment: Segment, frame: Any) -> None:
        payload = segment.payload(frame)
        if payload is not None:
            try:
                for instrument in decode_instruments(payload.tobytes()):
                    self.instruments[instrument.locate] = instrument
            except (ValueError, TypeError):
                self.gaps.append(Gap(0, 0, 0, segment.name, frame.offset, "symbols cannot be read"))


def _first(parts: TableParts) -> int:
    if parts.entry is not None:
        return parts.entry.first_ordinal
    return parts.header.ordinal if parts.header is not None else 0


def _shape(parts: TableParts) -> list[Shape]:
    return parts.shapes(()) if parts.footer is not None else []


def _id_in_table(files: FileSystem, folder: Path, number: int) -> list[bytes]:
    from trident_store.format import decode_position
    from trident_store.lsm.layout import TABLE_MAGIC, table_name
    from trident_store.tools.frames import bytes_of

    try:
        found = decode_position(TABLE_MAGIC, bytes_of(files, folder / table_name(number))[:64].tobytes())
    except OSError:
        return []
    return [found[0]] if found is not None else []


def salvage(wreck: Wreck, out: Any, *, advance: Advance | None = None) -> Salvaged:
    """Append what `wreck` proves to `out`, an empty store opened for writing with `wreck.session`.

    Returns what was saved and every gap. Raises StoreError when `out` refuses.
    """
    result = Salvaged(source=str(wreck.folder), expected=wreck.expected())
    due = 0  # ordinal of the next event, -1 when it is not known
    total = result.expected or 0
    for piece in wreck.pieces():
        events = piece.events
        if len(events) and int(events["seq"][0]) <= result.last_seq:
            keep = np.searchsorted(events["seq"], result.last_seq, "right")
            events = events[int(keep) :]  # that a table overlaps with others, or a segment was left over
        if not len(events):
            due = max(due, piece.after)
            continue
        skipped = len(piece.events) - len(events)
        first = piece.ordinal + skipped if piece.ordinal >= 0 else -1
        if 0 <= due < first:
            result.gaps.append(
                Gap(
                    result.last_seq + 1, int(events["seq"][0]) - 1, first - due, piece.file, piece.offset,
                    "missing before this place",
                )
            )  # fmt: skip
        for instrument in wreck.instruments.values():
            out.session.directory.put(instrument)
        for start in range(0, len(events), _SLICE):
            out.append(np.ascontiguousarray(events[start : start + _SLICE]))
        result.events += len(events)
        result.last_seq = int(events["seq"][-1])
        due = first + len(events) if first >= 0 else piece.after
        if advance is not None:
            advance(result.events, max(total, result.events))
    for instrument in wreck.instruments.values():
        out.session.directory.put(instrument)
    result.gaps = [gap for gap in result.gaps if not _explained(gap, wreck.gaps)] + wreck.gaps
    missing = (result.expected or 0) - result.events - sum(gap.events or 0 for gap in result.gaps)
    if missing > 0:
        result.gaps.append(
            Gap(result.last_seq + 1, 0, missing, "", 0, "missing at the end, or not accounted for")
        )
    result.gaps.sort(key=lambda gap: (gap.first_seq, gap.last_seq))
    out.sync()
    return result


def _explained(gap: Gap, by_file: list[Gap]) -> bool:
    """Is a jump in the numbers of events what is known to be missing of some files?"""
    inside = [each for each in by_file if gap.first_seq <= each.first_seq and each.last_seq <= gap.last_seq]
    return gap.events == sum(each.events or 0 for each in inside)


def session_for(wreck: Wreck, like: Session | None) -> Session:
    """The session of the new store. Raises StoreError when the files have none that checks and none is given:
    without its scales prices mean nothing."""
    session = wreck.session or like
    if session is None:
        raise StoreError(
            f"{wreck.folder}: the session (venue, date, scales) is lost",
            hint="name a sound store of the same session with --like",
        )
    return Session.from_json(session.to_json() | {"directory": []})


def write_report(result: Salvaged, folder: Path) -> None:
    """Put the report beside the events that were saved. Raises OSError."""
    (folder / REPORT).write_bytes(report_bytes(result))


def report_bytes(result: Salvaged) -> bytes:
    """The report as the file `salvaged.json` has it."""
    return json.dumps(asdict(result) | {"complete": result.complete}, indent=1).encode() + b"\n"
