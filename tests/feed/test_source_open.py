"""What cannot be opened, and zip archives."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import zipfile
import zlib
from pathlib import Path

import pytest
import zstandard

from trident_core.errors import InputError
from trident_core.source import Source, open_source

PLAIN = b"".join(zlib.crc32(bytes([n & 255, n >> 8])).to_bytes(4, "big") * (n % 7) for n in range(20_000))


def zstd(data: bytes, **options: bool) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(data)


def unpack(source: Source, n: int = 1 << 20) -> bytes:
    pieces = []
    while piece := source.read(n):
        assert len(piece) <= n
        pieces.append(piece)
    return b"".join(pieces)


def one_line(error: InputError) -> None:
    assert error.message
    assert error.hint
    assert "\n" not in str(error)
    assert error.exit_code == 3


def test_a_missing_file_names_near_ones(tmp_path: Path) -> None:
    """FEED-14."""
    (tmp_path / "01302020.NASDAQ_ITCH50.gz").write_bytes(b"x")
    with pytest.raises(InputError, match=r"does not exist .*01302020\.NASDAQ_ITCH50\.gz") as caught:
        open_source(tmp_path / "01302020.NASDAQ_ITCH50")
    one_line(caught.value)


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist") as caught:
        open_source(tmp_path / "no" / "file")
    one_line(caught.value)


def test_a_folder_names_a_file_in_it(tmp_path: Path) -> None:
    (tmp_path / "day.gz").write_bytes(b"x")
    with pytest.raises(InputError, match=r"is a folder.*day\.gz") as caught:
        open_source(tmp_path)
    one_line(caught.value)


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"x")
    path.chmod(0)
    if os.access(path, os.R_OK):  # the superuser may read everything

        def refuse(*args: object, **options: object) -> None:
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(InputError, match="may not be read") as caught:
        open_source(path)
    one_line(caught.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (gzip.compress(gzip.compress(PLAIN, mtime=0), mtime=0), r"compressed twice \(gzip in gzip\)"),
        (zstd(bz2.compress(PLAIN)), r"compressed twice \(bzip2 in zstd\)"),
        (b"\x1f\x8b\x08\x00 and then nonsense", "nothing can be unpacked"),
        (b"\x28\xb5\x2f\xfd", "nothing can be unpacked"),
        (b"\x04\x22\x4d\x18....", "is lz4"),
        (b"7z\xbc\xaf\x27\x1c....", "a 7z archive"),
        (b"\x1f\x9d........", "is compress"),
        (b"PK\x03\x04 cut", "damaged or cut zip"),
        (gzip.compress(b"PK\x03\x04....", mtime=0), "a zip archive"),
    ],
)
def test_unusable_content(content: bytes, problem: str, tmp_path: Path) -> None:
    """FEED-12, 14."""
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match=problem) as caught:
        open_source(path)
    one_line(caught.value)


@pytest.mark.parametrize("path", ["\0", "x" * 5000, ""])
def test_impossible_names(path: str) -> None:
    with pytest.raises(InputError) as caught:
        open_source(path)
    one_line(caught.value)


def test_a_read_error_is_one_line() -> None:
    class Broken(io.RawIOBase):
        calls = 0

        def read(self, n: int = -1) -> bytes:
            self.calls += 1
            if self.calls > 3:
                raise OSError(5, "Input/output error")
            return b"abc"

    source = Source(Broken(), "the disk")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"the disk: reading failed at byte .*Input/output error") as caught:
        unpack(source)
    one_line(caught.value)


# --- Zip archives -------------------------------------------------------------------------------------------


def archive(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as made:
        made.writestr("folder/", b"")
        for name, data in members.items():
            made.writestr(name, data)
    return path


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_only_file_of_a_zip(method: int, tmp_path: Path) -> None:
    """FEED-11."""
    path = archive(tmp_path / "a.zip", {"12302019.NASDAQ_ITCH50": PLAIN}, method)
    with open_source(path) as source:
        assert source.name == f"{path}/12302019.NASDAQ_ITCH50"
        assert unpack(source, 5000) == PLAIN
        consumed, total = source.progress()
        assert consumed == total
        assert not source.anomalies


def test_a_stored_member_may_be_compressed(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", {"day.gz": gzip.compress(PLAIN)}, zipfile.ZIP_STORED)
    with open_source(path) as source:
        assert unpack(source) == PLAIN


def test_of_lobsters_two_files_the_messages_are_read(tmp_path: Path) -> None:
    """FEED-11."""
    members = {"A_2012-06-21_1_2_orderbook_1.csv": b"book", "A_2012-06-21_1_2_message_1.csv": b"messages"}
    with open_source(archive(tmp_path / "a.zip", members)) as source:
        assert unpack(source) == b"messages"
        assert source.name.endswith("message_1.csv")


@pytest.mark.parametrize(
    ("members", "problem"),
    [({}, "of 0 files"), ({"a": b"1", "b": b"2"}, r"of 2 files \(a, b\)")],
)
def test_a_zip_without_one_clear_file(members: dict[str, bytes], problem: str, tmp_path: Path) -> None:
    """FEED-11."""
    with pytest.raises(InputError, match=problem) as caught:
        open_source(archive(tmp_path / "a.zip", members))
    one_line(caught.value)


def test_a_zip_packed_by_another_method(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="method that is not read") as caught:
        open_source(archive(tmp_path / "a.zip", {"a": PLAIN}, zipfile.ZIP_LZMA))
    one_line(caught.value)


def test_a_damaged_zip_member_is_counted(tmp_path: Path) -> None:
    path = archive(tmp_path / "a.zip", {"a": PLAIN})
    damaged = bytearray(path.read_bytes())
    damaged[len(damaged) // 2] ^= 255
    path.write_bytes(damaged)
    with open_source(path) as source:
        unpack(source)
        assert source.anomalies.count("corrupt_stream") == 1
