"""Where a feed's bytes come from: a file, standard input or a pipe, decompressed on the way.

Compression is told from the first bytes, never from the name. Nothing seeks, so pipes and FIFOs work too.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Protocol

from trident_core.decompress import RAW_BLOCK, Codec, Decompressor, codec_of
from trident_core.errors import InputError, UsageError
from trident_core.filenames import itch_version, session_date, venue
from trident_core.stats import Anomalies
from trident_core.zipped import MAGIC as ZIP_MAGIC
from trident_core.zipped import ZipMember

__all__ = ["PEEK_MAX", "READ_MAX", "Source", "itch_version", "open_source", "session_date", "venue"]

#: Most bytes `peek` looks ahead, and most that one `read` gives, however many were asked for.
PEEK_MAX: Final = 1 << 16
READ_MAX: Final = 1 << 24

#: Containers that are recognised, to say what to do instead of "unknown format".
_UNREADABLE: Final = {
    ZIP_MAGIC: ("a zip archive inside a pipe or another container", "unzip -p"),
    b"\x04\x22\x4d\x18": ("lz4", "lz4 -dc"),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", "7z x -so"),
    b"\x1f\x9d": ("compress (.Z)", "zcat"),
}


class Readable(Protocol):
    """What a Source needs of a stream. `read(n)` gives 1 to n bytes, b"" (or None) at the end."""

    def read(self, n: int, /) -> bytes | None: ...

    def close(self) -> None: ...


class _RawFile:
    """Raw bytes of an open stream, with the few at the front that were looked at given back."""

    def __init__(self, stream: Readable, name: str) -> None:
        self._name = name
        self._read: Callable[[int], bytes | None] = getattr(stream, "read1", stream.read)
        self._head = b""
        self.position = 0

    def head(self, n: int) -> bytes:
        """The first up to n bytes, not consumed."""
        while len(self._head) < n and (more := self._some(n - len(self._head))):
            self._head += more
        return self._head

    def some(self, n: int) -> bytes:
        """What one read gives: 1 to n bytes, b"" at the end."""
        if self._head:
            out, self._head = self._head[:n], self._head[n:]
        else:
            out = self._some(n)
        self.position += len(out)
        return out

    def block(self) -> bytes:
        out = self.some(RAW_BLOCK)
        while 0 < len(out) < RAW_BLOCK and (more := self.some(RAW_BLOCK - len(out))):
            out += more
        return out

    def _some(self, n: int) -> bytes:
        try:
            return self._read(n) or b""
        except OSError as error:
            raise InputError(
                f"{self._name}: reading failed at byte {self.position}: {error.strerror or error}",
                hint="is the disk or the other end of the pipe all right?",
            ) from error


class Source:
    """A ByteSource over an open binary stream. Made by `open_source`; a context manager that closes it.

    `codec` None: compression is told from the stream's first bytes. `total`: raw bytes, when known.
    """

    def __init__(
        self,
        stream: Readable,
        name: str,
        *,
        path: Path | None = None,
        total: int | None = None,
        owned: bool = True,
        codec: Codec | None = None,
    ) -> None:
        self.name = name
        self.path = path
        self.anomalies = Anomalies()
        self._stream = stream
        self._owned = owned
        self._total = total
        self._raw = _RawFile(stream, name)
        codec = codec or codec_of(self._raw.head(6))
        self.compression = codec.name if codec else ""
        self._unpack = Decompressor(self._raw, codec, self.anomalies) if codec else None
        self._ahead = b""  # what was pulled and not read: _ahead[_at:]
        self._at = 0

    def peek(self, n: int) -> bytes:
        n = min(n, PEEK_MAX)
        while len(self._ahead) - self._at < n and (more := self._pull(PEEK_MAX)):
            self._ahead, self._at = self._ahead[self._at :] + more, 0
        return self._ahead[self._at : self._at + n]

    def read(self, n: int) -> bytes:
        if n < 1:
            raise UsageError(f"cannot read {n} bytes", hint="ask for one or more")
        if self._at < len(self._ahead):
            out = self._ahead[self._at : self._at + n]
            self._at += len(out)
            return out
        self._ahead, self._at = b"", 0
        if self._unpack is None:
            return self._pull(min(n, READ_MAX))
        return self._fill(min(n, READ_MAX))

    def progress(self) -> tuple[int, int | None]:
        if self._unpack is not None:
            return self._unpack.consumed(), self._total
        return self._raw.position - (len(self._ahead) - self._at), self._total

    def close(self) -> None:
        if self._owned:
            self._stream.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _pull(self, n: int) -> bytes:
        return self._raw.some(n) if self._unpack is None else self._unpack.piece()

    def _fill(self, n: int) -> bytes:
        """Pieces joined to n bytes; what the last has too much waits in `_ahead`."""
        assert self._unpack is not None
        pieces: list[bytes] = []
        size = 0
        while size < n and (piece := self._unpack.piece()):
            pieces.append(piece)
            size += len(piece)
        if size > n:
            self._ahead, self._at = pieces[-1], len(pieces[-1]) - (size - n)
            pieces[-1] = pieces[-1][: self._at]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def open_source(path: str | os.PathLike[str]) -> Source:
    """Open a file, a FIFO or, for "-", standard input, and look at its first bytes.

    Raw, gzip, zstd, bzip2 and xz input is read, with any number of members, and of a zip archive the only
    file, or the one that holds messages (see `trident_core.zipped`). Input that is compressed twice is
    refused: unpacking again and again is what archive bombs count on. Blocks until the first bytes are there.

    Raises InputError, on one line and with a hint: not there, a folder, not allowed, empty, a container that
    is not read (lz4, 7z, .Z, a zip that comes through a pipe), compressed twice, or compressed but damaged
    from the start.
    """
    source = _open_stdin() if str(path) == "-" else _open_file(Path(path))
    try:
        _check_head(source)
    except BaseException:
        source.close()
        raise
    return source


def _open_stdin() -> Source:
    stream: Any = getattr(sys.stdin, "buffer", None)
    if stream is None:
        raise InputError("there is no standard input", hint="name a file, or pipe one in")
    total = None
    with contextlib.suppress(OSError, ValueError):
        number = stream.fileno()
        if os.isatty(number):
            raise InputError(
                "standard input is a terminal", hint="pipe the data in, as in: zcat day.gz | trident info -"
            )
        about = os.fstat(number)
        if stat.S_ISREG(about.st_mode):
            total = max(0, about.st_size - os.lseek(number, 0, os.SEEK_CUR))
    return Source(stream, "standard input", total=total, owned=False)


def _open_file(path: Path) -> Source:
    try:
        if path.is_dir():
            raise InputError(f"{path} is a folder, not a file", hint=_files_hint(path))
        stream: Any = open(path, "rb", buffering=0)  # noqa: SIM115  the Source closes it
    except FileNotFoundError:
        raise InputError(f"{path} does not exist", hint=_near_hint(path)) from None
    except PermissionError:
        raise InputError(
            f"{path} may not be read", hint=f"you lack the permission; try: ls -l {path}"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(
            f"{str(path)!r} cannot be opened: {reason}", hint="is the name what you meant?"
        ) from None
    try:
        return _over_file(stream, path)
    except BaseException:
        stream.close()
        raise


def _over_file(stream: BinaryIO, path: Path) -> Source:
    about = os.fstat(stream.fileno())
    if not stat.S_ISREG(about.st_mode):
        return Source(stream, str(path), path=path)
    if os.pread(stream.fileno(), len(ZIP_MAGIC), 0) == ZIP_MAGIC:
        member = ZipMember(path, stream)
        return Source(member, member.name, path=path, total=member.size, codec=member.codec)
    return Source(stream, str(path), path=path, total=about.st_size)


def _check_head(source: Source) -> None:
    head = source.peek(8)
    if not head and source.anomalies:
        raise InputError(
            f"{source.name}: nothing can be unpacked; the {source.compression} stream is damaged or cut "
            f"near byte {source.progress()[0]}",
            hint="fetch it again, and compare its size or checksum with the publisher's",
        )
    if not head:
        raise InputError(f"{source.name} is empty", hint="was it fetched or written to its end?")
    inner = codec_of(head)
    if source.compression and inner:
        raise InputError(
            f"{source.name} is compressed twice ({inner.name} in {source.compression})",
            hint=f"unpack it once: {_UNPACKERS[source.compression]} {source.path or '…'} | trident … -",
        )
    for magic, (what, command) in _UNREADABLE.items():
        if head.startswith(magic):
            raise InputError(
                f"{source.name} is {what}, which is not read here",
                hint=f"pipe it in: {command} {source.name} | trident … -",
            )


_UNPACKERS: Final = {
    "gzip": "gzip -dc", "zstd": "zstd -dc", "bzip2": "bzip2 -dc", "xz": "xz -dc", "zip": "unzip -p"
}  # fmt: skip


def _near_hint(path: Path) -> str:
    with contextlib.suppress(OSError):
        near = difflib.get_close_matches(path.name, os.listdir(path.parent), n=2, cutoff=0.6)
        if near:
            return f"did you mean {' or '.join(str(path.parent / name) for name in near)}?"
        return "check the spelling"
    return f"the folder {path.parent} cannot be read or is not there either"


def _files_hint(path: Path) -> str:
    with contextlib.suppress(OSError):
        first = next((entry.name for entry in sorted(path.iterdir()) if entry.is_file()), None)
        if first:
            return f"name one file in it, for example {path / first}"
    return "name one file"
