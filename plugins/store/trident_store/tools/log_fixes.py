"""Headers of the log that can be restored: their place and what surrounds them say what they must have been.

A header is 60 bytes and their CRC. What a damaged one was is worked out from its neighbours, its payload and
the mark; it is believed only if either the 60 bytes or the CRC that still stand there say the same. So two
independent witnesses agree on every byte, and a payload is never believed without its own CRC.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT
from trident_store.filesystem import FileSystem
from trident_store.format import (
    MAX_FRAME_EVENTS,
    MAX_PAYLOAD_BYTES,
    RECORD_BYTES,
    SEGMENT_MAGIC,
    Frame,
    FrameKind,
    Position,
    contradiction,
    crc32c,
    encode_frame,
    encode_position,
)
from trident_store.tools.frames import Segment, Stretch

_CRC_AT: Final = RECORD_BYTES - 4


class Patch(NamedTuple):
    """Bytes of a file to be replaced."""

    offset: int
    data: bytes
    what: str


class Next(NamedTuple):
    """What stands behind a place: its ordinal, the seq before it, and an epoch that is not smaller."""

    ordinal: int
    last_seq: int
    epoch: int


def log_patches(
    files: FileSystem, folder: Path, store_id: bytes, first: Position, mark: Position, numbers: list[int]
) -> dict[int, list[Patch]]:
    """The patches of each segment, from `first` (what the header of the log's first segment must say) to the
    mark. What cannot be proven is left as it is. Raises OSError."""
    here = first
    found: dict[int, list[Patch]] = {}
    for number in numbers:
        if number != here.segment:
            break
        segment = Segment(files, folder, number)
        walk = _Segment(segment, store_id, here, _end_of(files, folder, store_id, number, numbers) or mark)
        end = walk.run()
        if walk.patches:
            found[number] = walk.patches
        if end is None:
            break
        here = end._replace(segment=number + 1)
    return found


def _end_of(
    files: FileSystem, folder: Path, store_id: bytes, number: int, numbers: list[int]
) -> Position | None:
    """Where a sealed segment ends, as the header of the next one says; None for the last, or if that does not
    check."""
    if number + 1 not in numbers:
        return None
    header = Segment(files, folder, number + 1).header()
    return header[1]._replace(segment=number) if header is not None and header[0] == store_id else None


class _Segment:
    """The walk over one segment. `start` is what its header must say; up to `mark` it was durable."""

    def __init__(self, segment: Segment, store_id: bytes, start: Position, mark: Position) -> None:
        self.segment, self.store_id, self.start, self.mark = segment, store_id, start, mark
        self.patches: list[Patch] = []

    def run(self) -> Position | None:
        """Where the segment ends, None when that is not known any more."""
        stretches = list(self.segment.stretches(self.store_id))
        self._header(stretches)
        here = self.start._replace(offset=RECORD_BYTES)
        for i, stretch in enumerate(stretches):
            frame = stretch.frame
            if frame is None:
                frame = self._restored(
                    here, stretch, stretches[i + 1].frame if i + 1 < len(stretches) else None
                )
                if frame is None:
                    return here if here.place >= self.mark.place else None
            elif contradiction(frame, here):
                return None
            elif frame.kind == FrameKind.PAD:
                self._pad(frame)
            here = frame.after()
        return here

    def _header(self, stretches: list[Stretch]) -> None:
        """The segment's own header."""
        there = self.segment.data[:RECORD_BYTES].tobytes()
        found = self.segment.header()
        if found is not None or len(there) < RECORD_BYTES:
            return
        epochs = {self.start.epoch} | {each.frame.epoch for each in stretches[:1] if each.frame is not None}
        for epoch, minor in itertools.product(sorted(epochs), range(8)):
            made = encode_position(SEGMENT_MAGIC, self.store_id, self.start._replace(epoch=epoch), minor)
            if self._witness(there, made):
                self.patches.append(Patch(0, made, "the segment's header"))
                return

    def _pad(self, frame: Frame) -> None:
        """A pad's payload is zeros."""
        zeros = bytes(frame.payload_bytes)
        if self.segment.payload(frame) is None and crc32c(zeros) == frame.payload_crc:
            self.patches.append(Patch(frame.offset + RECORD_BYTES, zeros, "the zeros of a pad"))

    def _restored(self, here: Position, gap: Stretch, behind: Frame | None) -> Frame | None:
        """The one frame that filled a gap, if it can be proven."""
        there = self.segment.data[gap.offset : gap.offset + RECORD_BYTES].tobytes()
        size = gap.size
        if behind is not None:
            before = behind.first_seq - (behind.kind == FrameKind.EVENTS)
            after = Next(behind.ordinal, before, behind.epoch)
        elif self.mark.segment == here.segment and gap.offset < self.mark.offset:
            after = Next(self.mark.ordinal, self.mark.last_seq, self.mark.epoch)
            size = self.mark.offset - gap.offset
        else:
            return None
        payload = self.segment.data[gap.offset + RECORD_BYTES : gap.offset + size]
        for frame in self._candidates(here, after, payload):
            made = encode_frame(self.store_id, frame)
            if self._witness(there, made) and not contradiction(frame, here):
                self.patches.append(Patch(gap.offset, made, "a frame's header"))
                return frame
        return None

    def _candidates(self, here: Position, after: Next, payload: NDArray[np.uint8]) -> Iterator[Frame]:
        if len(payload) > MAX_PAYLOAD_BYTES or len(payload) % RECORD_BYTES:
            return
        count = after.ordinal - here.ordinal
        for epoch, settled in itertools.product(sorted({here.epoch, after.epoch}), (False, True)):
            frame = Frame(
                kind=FrameKind.PAD, count=0, epoch=epoch, ordinal=here.ordinal, first_seq=here.last_seq,
                last_seq=here.last_seq, payload_bytes=len(payload), payload_crc=crc32c(payload),
                offset=here.offset, segment=here.segment, settled=settled,
            )  # fmt: skip
            if 0 < count <= MAX_FRAME_EVENTS and len(payload) == count * EVENT.itemsize:
                seq = payload.view(EVENT)["seq"]
                if int(seq[-1]) <= after.last_seq and bool(np.all(seq[1:] > seq[:-1])):
                    yield frame._replace(
                        kind=FrameKind.EVENTS, count=count, first_seq=int(seq[0]), last_seq=int(seq[-1])
                    )
            elif count == 0:
                yield frame
                rows = _json_rows(payload)
                if rows is not None:
                    yield frame._replace(kind=FrameKind.DIRECTORY, count=rows)
                    yield frame._replace(kind=FrameKind.SESSION, count=1)

    @staticmethod
    def _witness(there: bytes, made: bytes) -> bool:
        """Do the bytes that stand there, or their CRC, say the same?"""
        return there[:_CRC_AT] == made[:_CRC_AT] or there[_CRC_AT:] == made[_CRC_AT:]


def _json_rows(payload: NDArray[np.uint8]) -> int | None:
    try:
        value = json.loads(payload.tobytes())
    except ValueError:
        return None
    return len(value) if isinstance(value, list) else 1
