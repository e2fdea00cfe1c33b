"""A view of the log up to a place: reads the segments again at each scan, checks every frame it uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Finding
from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError, UsageError
from trident_core.session import Session
from trident_store.filesystem import FileSystem, read
from trident_store.format import (
    RECORD_BYTES,
    Frame,
    FrameKind,
    Position,
    contradiction,
    crc32c,
    decode_frame,
    segment_name,
    seq_problem,
)
from trident_store.survey import Extent, damage

Range = tuple[int | None, int | None]


class LogSnapshot:
    """The first `count` events of a store; never changes, whatever the writer does. Usable in any thread,
    and after the store is closed."""

    def __init__(
        self,
        files: FileSystem,
        folder: Path,
        store_id: bytes,
        extents: Sequence[Extent],
        session: Session,
        end: Position,
    ) -> None:
        self.session = session
        self.count = end.ordinal
        self.last_seq = end.last_seq
        self._files, self._folder, self._store_id = files, folder, store_id
        self._extents = tuple(extents)
        self._closed = False

    def scan(
        self,
        *,
        seq: Range = (None, None),
        ts: Range = (None, None),
        locates: Sequence[int] | NDArray[Any] | None = None,
        types: bytes | None = None,
        batch: int = 65_536,
    ) -> Iterator[Events]:
        """See `trident_core.contracts.Snapshot.scan`. The arrays are the caller's own.

        Raises UsageError at once for a wrong argument; DamagedStoreError before it would yield an event of a
        frame that does not check.
        """
        self._require_open()
        if not 1 <= batch <= 1 << 24:
            raise UsageError(f"batch must be 1 to {1 << 24}, not {batch}")
        where = _Filter(_closed_range("seq", seq), _closed_range("ts", ts), _locates(locates), types)
        return _rebatch((where.pick(events) for events in self._frames(where.seq)), batch)

    def get(self, ref: int) -> Events:
        """Every event that names the order reference `ref`, or replaces an order by it (U), in append order.

        Reads the whole snapshot. Reference 0 means "no order": nothing names it. Raises UsageError unless
        0 <= ref < 2**64; DamagedStoreError as `scan` does.
        """
        self._require_open()
        if not 0 <= ref < 1 << 64:
            raise UsageError(f"an order reference is 0 to 2**64 - 1, not {ref}")
        found = [np.empty(0, EVENT)]
        if ref:
            wanted = np.uint64(ref)
            for events in self._frames((0, (1 << 64) - 1)):
                replaced = (events["ref2"] == wanted) & (events["type"] == ord("U"))
                found.append(_take(events, (events["ref"] == wanted) | replaced))
        return _join(found)

    def close(self) -> None:
        """Release. Idempotent; a scan under way may finish."""
        self._closed = True

    def _require_open(self) -> None:
        if self._closed:
            raise UsageError("the snapshot is closed", hint="take another one")

    def _frames(self, seq: tuple[int, int]) -> Iterator[Events]:
        """The events of each frame that may hold a seq of the closed range, in order."""
        here = Position()
        for extent in self._extents:
            here = here._replace(segment=extent.number, offset=RECORD_BYTES)
            name = segment_name(extent.number)
            try:
                handle = self._files.open(self._folder / name)
            except OSError as error:
                raise StoreError(f"cannot read {self._folder / name}: {error.strerror}") from error
            try:
                while here.offset < extent.end:
                    frame = self._header(handle, here)
                    here = frame.after()
                    if frame.kind != FrameKind.EVENTS or frame.last_seq < seq[0]:
                        continue
                    if frame.first_seq > seq[1]:
                        return
                    yield self._events(handle, frame)
            except OSError as error:
                raise StoreError(f"cannot read {self._folder / name}: {error.strerror}") from error
            finally:
                self._files.close(handle)

    def _header(self, handle: int, here: Position) -> Frame:
        data = read(self._files, handle, RECORD_BYTES, here.offset)
        frame = decode_frame(self._store_id, data.tobytes())
        problem = contradiction(frame, here) if frame else "a frame's header does not check"
        if frame is None or problem:
            name = segment_name(here.segment)
            raise damage(Finding(name, here.offset, here.ordinal, self.count - 1, problem))
        return frame

    def _events(self, handle: int, frame: Frame) -> Events:
        payload = read(self._files, handle, frame.payload_bytes, frame.offset + RECORD_BYTES)
        if len(payload) < frame.payload_bytes or crc32c(payload) != frame.payload_crc:
            problem = "a frame's payload does not check"
        else:
            problem = seq_problem(frame, payload.view(EVENT))
        if problem:
            last = frame.ordinal + frame.count - 1
            raise damage(Finding(segment_name(frame.segment), frame.offset, frame.ordinal, last, problem))
        return payload.view(EVENT)


@dataclass(frozen=True, slots=True)
class _Filter:
    """The conditions of a scan; ranges are closed."""

    seq: tuple[int, int]
    ts: tuple[int, int]
    locates: NDArray[np.uint32] | None
    types: bytes | None

    def pick(self, events: Events) -> Events:
        """The events that satisfy all conditions; the same array when all do."""
        keep: NDArray[np.bool_] | None = None
        for column, (low, high) in (("seq", self.seq), ("ts", self.ts)):
            if low > 0:
                keep = _both(keep, events[column] >= np.uint64(low))
            if high < (1 << 64) - 1:
                keep = _both(keep, events[column] <= np.uint64(high))
        if self.locates is not None:
            keep = _both(keep, np.isin(events["locate"], self.locates))
        if self.types is not None:
            wanted = np.zeros(256, np.bool_)
            wanted[list(self.types)] = True
            keep = _both(keep, wanted[events["type"]])
        return events if keep is None or keep.all() else _take(events, keep)


def _both(keep: NDArray[np.bool_] | None, more: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return more if keep is None else keep & more


def _take(events: Events, keep: NDArray[np.bool_]) -> Events:
    # Rows of eight words move as memory; numpy moves structured rows field by field, five times slower.
    return events.view("<u8").reshape(-1, 8)[keep].view(EVENT).reshape(-1)


def _join(parts: Sequence[Events]) -> Events:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([part.view("<u8") for part in parts]).view(EVENT)


def _rebatch(parts: Iterable[Events], batch: int) -> Iterator[Events]:
    """The same events in arrays of `batch`, the last one shorter."""
    kept: list[Events] = []
    have = 0
    for part in parts:
        if len(part):
            kept.append(part)
            have += len(part)
        while have >= batch:
            joined = _join(kept)
            yield joined[:batch]
            kept, have = [joined[batch:]] if have > batch else [], have - batch
    if have:
        yield _join(kept)


def _closed_range(name: str, limits: Range) -> tuple[int, int]:
    """Open ends as 0 and 2**64 - 1; limits outside u64 are moved to what they mean."""
    try:
        low, high = limits
        low = 0 if low is None else int(low)
        high = (1 << 64) - 1 if high is None else int(high)
    except (TypeError, ValueError):
        raise UsageError(f"{name} must be (low, high), each an integer or None, not {limits!r}") from None
    if high < 0 or low >= 1 << 64 or low > high:
        return 1, 0
    return max(low, 0), min(high, (1 << 64) - 1)


def _locates(locates: Sequence[int] | NDArray[Any] | None) -> NDArray[np.uint32] | None:
    if locates is None:
        return None
    wanted = np.asarray(locates)
    if wanted.size == 0:
        return np.empty(0, np.uint32)
    if wanted.ndim != 1 or wanted.dtype.kind not in "iu":
        raise UsageError(f"locates must be a flat sequence of integers, not {wanted.dtype} of {wanted.shape}")
    return wanted[(wanted >= 0) & (wanted < 1 << 32)].astype(np.uint32)
