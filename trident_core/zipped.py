"""One member of a zip archive as a stream: the only one, or the one that is meant.

Only archives in regular files are read: the list of members stands at the end of an archive.
"""

from __future__ import annotations

import fnmatch
import struct
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO, Final

from trident_core.decompress import STEP_OUT, Codec
from trident_core.errors import InputError

MAGIC: Final = b"PK\x03\x04"
#: Of several members, the one with such a name is read: LOBSTER packs a day's messages with its order book.
MESSAGES_PATTERN: Final = "*_message_*.csv"

_LOCAL_HEADER: Final = struct.Struct("<4s5H3I2H")
_NAMES_SHOWN: Final = 4


class ZipMember:
    """The raw bytes of one member, named archive/member. `codec` unpacks them; None: they are stored."""

    def __init__(self, path: Path, stream: BinaryIO) -> None:
        """Find the member in `stream`, an open archive, and stand at its first byte.

        Raises InputError: not a whole archive, no member or several to choose from, encrypted, or packed by a
        method other than deflate.
        """
        info = _choose(path, stream)
        self.name = f"{path}/{info.filename}"
        self.size = info.compress_size
        self.codec: Codec | None = None
        if info.compress_type == zipfile.ZIP_DEFLATED:
            self.codec = Codec("zip", (b"",), lambda _: _DeflateMember(info), (zlib.error,))
        self._stream = stream
        self._left = self.size
        header = b""
        if 0 <= info.header_offset < 1 << 63:  # a damaged list of members may say anything
            stream.seek(info.header_offset)
            header = stream.read(_LOCAL_HEADER.size)
        if len(header) < _LOCAL_HEADER.size or header[:4] != MAGIC:
            raise _damaged(path, "a member is not where the list of members says")
        name_bytes, extra_bytes = _LOCAL_HEADER.unpack(header)[-2:]
        stream.seek(info.header_offset + _LOCAL_HEADER.size + name_bytes + extra_bytes)

    def read(self, n: int) -> bytes:
        """The next 1 to n raw bytes; b"" at the end of the member."""
        data = self._stream.read(min(n, self._left))
        self._left -= len(data)
        return data

    def close(self) -> None:
        self._stream.close()


class _DeflateMember:
    """A raw deflate stream, its length and CRC-32 checked at its end."""

    def __init__(self, info: zipfile.ZipInfo) -> None:
        self._inflate = zlib.decompressobj(wbits=-15)
        self._info = info
        self._crc = 0
        self._size = 0
        self.eof = False
        self.hungry = True

    def step(self, data: bytes) -> tuple[bytes, bytes]:
        out = self._inflate.decompress(data, STEP_OUT)
        self._crc = zlib.crc32(out, self._crc)
        self._size += len(out)
        self.eof = self._inflate.eof
        if self.eof and (self._crc, self._size) != (self._info.CRC, self._info.file_size):
            raise zlib.error("another length or checksum than the archive lists")
        rest = self._inflate.unused_data if self.eof else self._inflate.unconsumed_tail
        self.hungry = len(out) < STEP_OUT and not rest
        return out, rest


def _choose(path: Path, stream: BinaryIO) -> zipfile.ZipInfo:
    try:
        with zipfile.ZipFile(stream) as archive:
            members = [info for info in archive.infolist() if not info.filename.endswith("/")]
    except (
        zipfile.BadZipFile,
        NotImplementedError,
        ValueError,
        OverflowError,
        OSError,
        struct.error,
    ) as error:
        raise _damaged(path, str(error)) from None
    chosen = members
    if len(members) > 1:
        chosen = [info for info in members if fnmatch.fnmatch(info.filename.lower(), MESSAGES_PATTERN)]
    if len(chosen) != 1:
        shown = ", ".join(info.filename for info in members[:_NAMES_SHOWN])
        more = f" and {len(members) - _NAMES_SHOWN} more" if len(members) > _NAMES_SHOWN else ""
        raise InputError(
            f"{path} is a zip archive of {len(members)} files ({shown or 'none'}{more})",
            hint=f"pipe the one that is meant in: unzip -p {path} MEMBER | trident … -",
        )
    info = chosen[0]
    if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        what = "encrypted" if info.flag_bits & 1 else "packed by a method that is not read here"
        raise InputError(
            f"{info.filename} in {path} is {what}",
            hint=f"pipe it in: unzip -p {path} {info.filename} | trident … -",
        )
    return info


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(
        f"{path} is a damaged or cut zip archive: {reason}",
        hint="fetch it again, and compare its size or checksum with the publisher's",
    )
