"""Files that readers hold and their writer wants to use again: on the real file system and in the model."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trident_core.filesystem import OsFileSystem, read
from trident_store.crashmodel import CrashFileSystem


@pytest.fixture(params=["real", "model"])
def files(request: Any, tmp_path: Path) -> Any:
    if request.param == "real":
        (tmp_path / "a").write_bytes(b"content")
        return OsFileSystem()
    return CrashFileSystem({"a": b"content"})


def test_a_file_is_set_aside_only_when_nobody_holds_it(files: Any, tmp_path: Path) -> None:
    held = files.open_shared(tmp_path / "a")
    assert not files.set_aside(tmp_path / "a", tmp_path / "b")
    assert files.list_directory(tmp_path) == ["a"]
    files.close(held)
    assert files.set_aside(tmp_path / "a", tmp_path / "b")
    assert files.list_directory(tmp_path) == ["b"]
    with pytest.raises(FileNotFoundError):
        files.open_shared(tmp_path / "a")


def test_a_plain_handle_holds_nothing(files: Any, tmp_path: Path) -> None:
    handle = files.open(tmp_path / "a")
    assert files.set_aside(tmp_path / "a", tmp_path / "b")
    assert bytes(read(files, handle, 7, 0)) == b"content"


def test_a_new_name_takes_the_place_of_an_old_file(files: Any, tmp_path: Path) -> None:
    made = files.open(tmp_path / "b", write=True, create=True)
    files.write(made, b"other", 0)
    files.rename(tmp_path / "b", tmp_path / "a")
    assert files.list_directory(tmp_path) == ["a"]
    assert bytes(read(files, files.open(tmp_path / "a"), 7, 0)) == b"other"


def test_another_process_holds_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    code = (
        "import sys; from pathlib import Path; from trident_core.filesystem import OsFileSystem\n"
        "OsFileSystem().open_shared(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "a")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "held\n"
        assert not OsFileSystem().set_aside(tmp_path / "a", tmp_path / "b")
        reader.communicate("")
    assert OsFileSystem().set_aside(tmp_path / "a", tmp_path / "b")


def test_a_file_that_was_set_aside_while_it_was_opened_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between opening and locking, the writer takes the file and uses it under another name."""
    (tmp_path / "a").write_bytes(b"content")
    files, opened = OsFileSystem(), os.open

    def slow(path: Any, *how: Any) -> int:
        handle = opened(path, *how)
        monkeypatch.setattr(os, "open", opened)
        assert files.set_aside(tmp_path / "a", tmp_path / "b")
        return handle

    monkeypatch.setattr(os, "open", slow)
    with pytest.raises(FileNotFoundError):
        files.open_shared(tmp_path / "a")


def test_a_name_in_the_model_is_old_or_new_until_the_folder_is_synced() -> None:
    files = CrashFileSystem({"a": b"content"})
    files.rename(Path("/s/a"), Path("/s/b"))
    states = [dict(disk) for disk in files.crash_point().states(100, random.Random(0))]
    assert {"a": b"content"} in states
    assert {"b": b"content"} in states
    files.sync_directory(Path("/s"))
    assert [dict(disk) for disk in files.crash_point().states(100, random.Random(0))] == [{"b": b"content"}]
