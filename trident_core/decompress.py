"""Streaming decompression in bounded memory: gzip, zstd, bz2 and xz, with any number of members.

Every step takes a block of at most `RAW_BLOCK` raw bytes and gives at most `STEP_OUT` bytes, whatever the
input claims to expand to. The steps do not depend on how the caller reads, so that a damaged stream always
ends at the same byte (of a damaged gzip, isal may give a few bytes more or fewer than zlib).
"""

from __future__ import annotations

import bz2
import importlib
import lzma
import zlib
from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import zstandard

from trident_core.stats import Anomalies


def _gzip_library() -> tuple[Any, tuple[type[Exception], ...]]:
    """What inflates, and what it raises for damage: isal (the extra `fast`, 1.6 times as fast), else zlib."""
    try:
        isal = importlib.import_module("isal.isal_zlib")
    except ImportError:
        return zlib, (zlib.error,)
    return isal, (isal.error, zlib.error)


_INFLATE, _INFLATE_ERRORS = _gzip_library()

#: Raw bytes handed to a decompressor at once.
RAW_BLOCK: Final = 1 << 16
#: Most bytes one step gives (a zstd block gives at most 128 KiB).
STEP_OUT: Final = 1 << 18
#: Window of a zstd frame and memory of an xz stream: larger ones are refused, as damaged.
ZSTD_WINDOW_MAX: Final = 1 << 27
XZ_MEMORY_MAX: Final = 1 << 28


class RawInput(Protocol):
    """Where raw bytes come from. `position` is the offset of the byte after the last one given."""

    position: int

    def block(self) -> bytes:
        """The next RAW_BLOCK bytes; fewer only at the end, none after it."""
        ...


class Member(Protocol):
    """One gzip member, bz2 or xz stream, or zstd frame. `hungry`: it needs input to go on."""

    eof: bool
    hungry: bool

    def step(self, data: bytes) -> tuple[bytes, bytes]:
        """-> (output, at most STEP_OUT bytes; the input that was not used)."""
        ...


class Codec(NamedTuple):
    """A compressed format: its name, how a member starts, a reader by its head, what damage raises."""

    name: str
    magics: tuple[bytes, ...]
    member: Callable[[bytes], Member]
    errors: tuple[type[Exception], ...]

    def starts(self, data: bytes) -> bool:
        return data.startswith(self.magics)

    def may_start(self, data: bytes) -> bool:
        """Is `data`, shorter than a magic, the beginning of one?"""
        return any(magic.startswith(data) for magic in self.magics)


class _GzipMember:
    def __init__(self) -> None:
        self._inflate = _INFLATE.decompressobj(wbits=31)
        self.eof = False
        self.hungry = True

    def step(self, data: bytes) -> tuple[bytes, bytes]:
        out = self._inflate.decompress(data, STEP_OUT)
        self.eof = self._inflate.eof
        rest = self._inflate.unused_data if self.eof else self._inflate.unconsumed_tail
        self.hungry = len(out) < STEP_OUT and not rest  # a full step may leave output inside
        return out, rest


class _BlockMember:
    """bz2 and xz: both classes of the standard library keep what they did not use."""

    def __init__(self, decompressor: bz2.BZ2Decompressor | lzma.LZMADecompressor) -> None:
        self._inner = decompressor
        self.eof = False
        self.hungry = True

    def step(self, data: bytes) -> tuple[bytes, bytes]:
        out = self._inner.decompress(data, STEP_OUT)
        self.eof = self._inner.eof
        self.hungry = not self.eof and self._inner.needs_input
        return out, self._inner.unused_data if self.eof else b""


class _ZstdFrame:
    """One zstd frame (RFC 8878, section 3.1.1), given to the library block by block.

    The library has no limit on what one call gives; a block has: 128 KiB. Walking the blocks also tells a
    complete frame from one that was cut.
    """

    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_MAX).decompressobj()
        self._part = bytearray()  # of the header, block or checksum that comes next
        self._next = "header"
        self._checksum = False
        self.eof = False
        self.hungry = True

    def step(self, data: bytes) -> tuple[bytes, bytes]:
        self._part += data
        need = self._size()
        if len(self._part) < need:
            return b"", b""
        unit, rest = bytes(self._part[:need]), bytes(self._part[need:])
        self._part.clear()
        out = self._inner.decompress(unit)
        if self._next == "checksum" or (self._next == "block" and unit[0] & 1 and not self._checksum):
            self.eof = True
        elif self._next == "block" and unit[0] & 1:
            self._next = "checksum"
        else:
            self._next = "block"
        return out, rest

    def _size(self) -> int:
        """Bytes of what comes next, or more than there are when that cannot be told yet."""
        part = self._part
        if self._next == "checksum":
            return 4
        if self._next == "block":
            if len(part) < 3:
                return 3
            head = int.from_bytes(part[:3], "little")
            return 3 + (1 if head >> 1 & 3 == 1 else head >> 3)  # type 1, RLE: one byte, repeated
        if len(part) < 5:
            return 5
        descriptor = part[4]
        single = descriptor >> 5 & 1
        self._checksum = bool(descriptor >> 2 & 1)
        content = (single, 2, 4, 8)[descriptor >> 6]
        return 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + content


class _Skippable:
    """A skippable zstd frame (RFC 8878, section 3.1.2): magic, u32 size, bytes that mean nothing here."""

    def __init__(self) -> None:
        self._head = b""
        self._left = 0
        self.eof = False
        self.hungry = True

    def step(self, data: bytes) -> tuple[bytes, bytes]:
        missing = 8 - len(self._head)
        if missing:
            self._head += data[:missing]
            data = data[missing:]
            if len(self._head) < 8:
                return b"", b""
            self._left = int.from_bytes(self._head[4:], "little")
        used = min(self._left, len(data))
        self._left -= used
        self.eof = not self._left
        return b"", data[used:]


_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SKIPPABLE: Final = tuple(bytes((low, 0x2A, 0x4D, 0x18)) for low in range(0x50, 0x60))

CODECS: Final[tuple[Codec, ...]] = (
    Codec("gzip", (b"\x1f\x8b",), lambda _: _GzipMember(), _INFLATE_ERRORS),
    Codec(
        "zstd",
        (_ZSTD_MAGIC, *_SKIPPABLE),
        lambda head: _ZstdFrame() if head.startswith(_ZSTD_MAGIC) else _Skippable(),
        (zstandard.ZstdError,),
    ),
    Codec("bzip2", (b"BZh",), lambda _: _BlockMember(bz2.BZ2Decompressor()), (OSError, ValueError)),
    Codec(
        "xz",
        (b"\xfd7zXZ\x00",),
        lambda _: _BlockMember(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY_MAX)),
        (lzma.LZMAError, ValueError),
    ),
)


def codec_of(head: bytes) -> Codec | None:
    """The codec whose magic `head` starts with, or None."""
    return next((codec for codec in CODECS if codec.starts(head)), None)


class Decompressor:
    """All members of a compressed input, one after the other.

    Zero bytes after a member are padding. Anything else that does not start a member ends the reading and
    counts `trailing_bytes`. A member that ends early counts `truncated_stream`, a damaged one
    `corrupt_stream`, at the raw offset of the step in which it was found; that step's output is lost.
    """

    def __init__(self, raw: RawInput, codec: Codec, anomalies: Anomalies) -> None:
        self._raw = raw
        self._codec = codec
        self._anomalies = anomalies
        self._member: Member | None = None
        self._members = 0
        self._input = b""
        self._done = False

    def consumed(self) -> int:
        """Raw bytes used."""
        return self._raw.position - len(self._input)

    def piece(self) -> bytes:
        """The next 1 to STEP_OUT bytes; b"" at the end."""
        while not self._done:
            member = self._member or self._next_member()
            if member is None:
                break
            if member.hungry and not self._input:
                self._input = self._raw.block()
                if not self._input:
                    self._stop("truncated_stream")
                    break
            try:
                out, self._input = member.step(self._input)
            except self._codec.errors:
                self._stop("corrupt_stream")
                break
            if member.eof:
                self._member = None
            if out:
                return out
        return b""

    def _next_member(self) -> Member | None:
        if self._members and not self._skip_padding():
            self._done = True
            return None
        longest = max(len(magic) for magic in self._codec.magics)
        while len(self._input) < longest and (more := self._raw.block()):
            self._input += more
        if not self._codec.starts(self._input):
            cut = len(self._input) < longest and self._codec.may_start(self._input)
            self._stop("truncated_stream" if cut else "trailing_bytes")
            return None
        self._members += 1
        self._member = self._codec.member(self._input)
        return self._member

    def _skip_padding(self) -> bool:
        """Skip zero bytes; is there anything after them?"""
        self._input = self._input.lstrip(b"\0")
        while not self._input:
            block = self._raw.block()
            if not block:
                return False
            self._input = block.lstrip(b"\0")
        return True

    def _stop(self, anomaly: str) -> None:
        self._anomalies.add(anomaly, at=self.consumed())
        self._done = True
