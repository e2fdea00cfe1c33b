"""Faults by flag: what is understood, what is refused with one helpful line, and what then happens."""

from __future__ import annotations

import errno
import time
from pathlib import Path

import pytest

from trident_core.errors import UsageError
from trident_core.filesystem import OsFileSystem, write_all
from trident_core.line.faults import KINDS, Faults, faulty, parse_fault


@pytest.mark.parametrize(
    ("text", "unit", "at", "again", "seconds", "number"),
    [
        ("fsync-stall=77ms@3s", "s", 3.0, False, 0.077, 0),
        ("fsync-stall@250ms+", "s", 0.25, True, 0.077, 0),
        ("write-error=EIO@1000", "calls", 1000, False, 0, errno.EIO),
        ("write-error=ENOSPC@7+", "calls", 7, True, 0, errno.ENOSPC),
        ("enospc@64MiB", "bytes", 64 << 20, True, 0, 0),
        ("slow-write=1.5ms@1", "calls", 1, False, 0.0015, 0),
        ("kill@12", "calls", 12, False, 0, 0),
        ("ring-stall=2s@0.5s", "s", 0.5, False, 2.0, 0),
    ],
)
def test_what_is_understood(
    text: str, unit: str, at: float, again: bool, seconds: float, number: int
) -> None:
    fault = parse_fault(text)
    assert (fault.unit, fault.at, fault.again) == (unit, at, again)
    assert fault.seconds == pytest.approx(seconds)
    assert fault.errno == number


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("fsync-stal=77ms@3s", "no fault 'fsync-stal'"),
        ("fsync-stall=77ms", "when?"),
        ("fsync-stall=77ms@soon", "'soon' is no time, call or size"),
        ("fsync-stall=77@3s", "'77' is no time"),
        ("write-error=EWRONG@3", "no error 'EWRONG'"),
        ("enospc=5@3", "takes no value"),
        ("write-error@0", "counted from 1"),
        ("write-error@1.5", "counted from 1"),
        ("ring-stall@3MiB", "no bytes written"),
        ("fsync-stall=2h@3s", "is no time"),
        ("fsync-stall=90min@3s", "longer than an hour"),
        ("", "no fault ''"),
    ],
)
def test_what_is_refused_says_why_in_one_line(text: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_fault(text)
    assert words in caught.value.message
    assert "\n" not in str(caught.value)
    assert caught.value.hint


def test_every_kind_has_a_default_that_is_understood() -> None:
    for kind in KINDS:
        assert parse_fault(f"{kind}@1").kind == kind


def open_file(folder: Path, *texts: str) -> tuple[Faults, object, int]:
    faults = Faults.parse(texts)
    assert faults is not None
    files = faulty(faults)
    return faults, files, files.open(folder / "file", write=True, create=True)


def test_a_write_fails_at_its_number_and_only_then(tmp_path: Path) -> None:
    faults, files, handle = open_file(tmp_path, "write-error=EROFS@2")
    assert files.write(handle, b"one", 0) == 3  # type: ignore[attr-defined]
    with pytest.raises(OSError, match="Read-only") as caught:
        files.write(handle, b"two", 3)  # type: ignore[attr-defined]
    assert caught.value.errno == errno.EROFS
    assert files.write(handle, b"two", 3) == 3  # type: ignore[attr-defined]
    assert faults.to_json() == [{"fault": "write-error=EROFS@2", "fired": 1}]
    assert (tmp_path / "file").read_bytes() == b"onetwo"


def test_a_full_disk_takes_part_of_a_write_and_then_nothing(tmp_path: Path) -> None:
    _, files, handle = open_file(tmp_path, "enospc@1KiB")
    write_all(files, handle, bytes(512), 0)  # type: ignore[arg-type]
    with pytest.raises(OSError, match="No space left"):
        write_all(files, handle, bytes(1024), 512)  # type: ignore[arg-type]
    assert (tmp_path / "file").stat().st_size == 1024
    with pytest.raises(OSError, match="No space left"):
        files.write(handle, b"x", 0)  # type: ignore[attr-defined]


def test_a_short_write_is_gone_on_with(tmp_path: Path) -> None:
    _, files, handle = open_file(tmp_path, "short-write@1")
    write_all(files, handle, bytes(range(100)), 0)  # type: ignore[arg-type]
    assert (tmp_path / "file").read_bytes() == bytes(range(100))


def test_a_sync_stalls_and_another_fails(tmp_path: Path) -> None:
    _, files, handle = open_file(tmp_path, "fsync-stall=60ms@1", "fsync-error@2")
    began = time.monotonic()
    files.sync(handle)  # type: ignore[attr-defined]
    assert time.monotonic() - began >= 0.06
    with pytest.raises(OSError, match="Input/output"):
        files.sync(handle)  # type: ignore[attr-defined]
    files.sync_directory(tmp_path)  # type: ignore[attr-defined]


def test_everything_else_is_as_it_was(tmp_path: Path) -> None:
    _, files, handle = open_file(tmp_path, "write-error@1000")
    plain = OsFileSystem()
    assert files.size(handle) == plain.size(handle) == 0  # type: ignore[attr-defined]
    assert files.list_directory(tmp_path) == ["file"]  # type: ignore[attr-defined]
