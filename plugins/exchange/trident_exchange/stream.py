"""A sequenced stream: messages numbered from 1, all of which can be had again at any time.

The messages stand in a temporary file without a name, behind their 2-byte lengths; of every 64th, memory
holds where it is. The file needs not survive: the stream is a function of the journal and is made anew from
it. So the memory of a day of a million messages is 128 KB, however many clients are behind.
"""

from __future__ import annotations

import os
import tempfile
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Final

_EVERY: Final = 64
#: Bytes that wait in memory before they are written to the file.
_BUFFER: Final = 1 << 18


class Stream:
    """`next` is the number of the message that comes next; `bytes` what all of them take."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = tempfile.TemporaryFile(prefix="trident-stream-", dir=folder, buffering=0)  # noqa: SIM115
        self._fd = self._file.fileno()
        self._marks = array("Q")
        self._tail = bytearray()
        self._written = 0
        self.next = 1
        self.bytes = 0

    def append(self, messages: Iterable[bytes]) -> None:
        """Messages of at most 65,535 bytes."""
        tail = self._tail
        for message in messages:
            if (self.next - 1) % _EVERY == 0:
                self._marks.append(self.bytes)
            tail += len(message).to_bytes(2, "big")
            tail += message
            self.bytes += 2 + len(message)
            self.next += 1
        if len(tail) >= _BUFFER:
            self._flush()

    def append_framed(self, data: bytes) -> None:
        """Messages that stand behind their 2-byte lengths already."""
        at = 0
        while at < len(data):
            if (self.next - 1) % _EVERY == 0:
                self._marks.append(self.bytes + at)
            at += 2 + (data[at] << 8 | data[at + 1])
            self.next += 1
        self.bytes += len(data)
        self._tail += data
        if len(self._tail) >= _BUFFER:
            self._flush()

    def read(self, first: int, bytes_max: int) -> tuple[int, bytes]:
        """(count, messages behind their lengths) from number `first` on: as many as `bytes_max` bytes hold,
        at least one if there is one."""
        if not 1 <= first < self.next:
            return 0, b""
        mark = (first - 1) // _EVERY
        start = self._marks[mark]
        skip = (first - 1) % _EVERY
        # What a mark spans is read whole, to find `first` in it.
        upto = self._marks[mark + 1] if mark + 1 < len(self._marks) else self.bytes
        data = self._pread(start, min(self.bytes, upto + bytes_max) - start)
        begin = 0
        for _ in range(skip):
            begin += 2 + (data[begin] << 8 | data[begin + 1])
        end, count, left = begin, 0, self.next - first
        while count < left and end + 2 <= len(data):
            after = end + 2 + (data[end] << 8 | data[end + 1])
            if after > len(data) or (count and after - begin > bytes_max):
                break
            end, count = after, count + 1
        return count, data[begin:end]

    def messages(self, first: int = 1) -> Iterable[bytes]:
        """All messages from number `first` on."""
        while first < self.next:
            count, data = self.read(first, 1 << 16)
            at = 0
            for _ in range(count):
                end = at + 2 + (data[at] << 8 | data[at + 1])
                yield data[at + 2 : end]
                at = end
            first += count

    def close(self) -> None:
        self._file.close()

    def _flush(self) -> None:
        view = memoryview(self._tail)
        at = 0
        while at < len(view):
            at += os.pwrite(self._fd, view[at:], self._written + at)
        view.release()
        self._written += len(self._tail)
        self._tail = bytearray()

    def _pread(self, at: int, size: int) -> bytes:
        if at + size > self._written:
            begin = max(0, at - self._written)
            from_tail = bytes(self._tail[begin : at + size - self._written])
            size = max(0, self._written - at)
        else:
            from_tail = b""
        parts = []
        while size > 0:
            part = os.pread(self._fd, size, at)
            if not part:
                raise OSError(f"the file of a stream ends at {at}")
            parts.append(part)
            at, size = at + len(part), size - len(part)
        return b"".join(parts) + from_tail
