"""Exact reads over a ByteSource, which gives what it has."""

from __future__ import annotations

from typing import Final

from trident_core.contracts import ByteSource

_BLOCK: Final = 1 << 18


class Cursor:
    """`position` is the source offset of the next byte. Holds at most one block and what `take` asks for."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._buffer = b""
        self._at = 0
        self.position = 0

    def take(self, n: int) -> bytes:
        """The next n bytes; fewer only at the end of the source. The caller bounds n."""
        if len(self._buffer) - self._at < n:
            self._refill(n)
        out = self._buffer[self._at : self._at + n]
        self._at += len(out)
        self.position += len(out)
        return out

    def skip(self, n: int) -> int:
        """Pass over n bytes, in bounded memory; how many there were."""
        left = n
        while left:
            passed = len(self.take(min(left, _BLOCK)))
            if not passed:
                break
            left -= passed
        return n - left

    def _refill(self, n: int) -> None:
        parts = [self._buffer[self._at :]]
        size = len(parts[0])
        while size < n:
            piece = self._source.read(max(_BLOCK, n - size))
            if not piece:
                break
            parts.append(piece)
            size += len(piece)
        self._buffer, self._at = b"".join(parts), 0
