"""The cache of a day: the input is read once, nothing is left behind, limits hold."""

from __future__ import annotations

import gc
import os
import shutil
import threading

import numpy as np
import pytest

import trident_core as trident
from trident_core.day import event_file
from trident_core.day.entangled import Entangled
from trident_core.day.event_file import EventFile, NoRoomError
from trident_core.dtypes import EFFECT, EVENT, Outcome
from trident_core.errors import UsageError


def open_in(folder) -> list[str]:
    """Files of this process in a folder, named or not."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            continue
        if target.startswith(f"{folder}/"):
            found.append(target)
    return found


@pytest.fixture
def own(odd_day, tmp_path):
    """A copy of the day that may be removed, and a folder for the cache."""
    path = tmp_path / odd_day.name
    shutil.copy(odd_day, path)
    (tmp_path / "cache").mkdir()
    return path, tmp_path / "cache"


def test_the_input_is_read_once(own):
    path, cache = own
    day = trident.open(path, cache=cache)
    first = day.bbo(day.symbols[0]).numpy()
    path.unlink()
    assert day.bbo(day.symbols[0]).numpy().tolist() == first.tolist()
    assert len(day.bbo()) > len(day.bbo(day.symbols[1])) > 0
    assert len(day.book_at(day.symbols[1], "12:00").orders) > 0
    assert len(day.table("noii")) > 0
    assert day.cache_bytes >= 68 * 6_000
    day.close()
    day.close()
    assert day.cache_bytes == 0


def test_without_a_cache_it_is_read_each_time(own):
    path, _ = own
    day = trident.open(path, cache=False)
    assert len(day.bbo()) > 0
    assert day.cache_bytes == 0
    path.unlink()
    with pytest.raises(trident.TridentError, match="does not exist"):
        day.bbo().numpy()


@pytest.mark.parametrize("end", ["with", "close", "forget", "error"])
def test_nothing_is_left_behind(own, end):
    path, cache = own
    if end == "error":
        with pytest.raises(UsageError), trident.open(path, cache=cache) as day:
            day.bbo(day.symbols[0] + "?")
    elif end == "with":
        with trident.open(path, cache=cache) as day:
            len(day.bbo())
            assert len(open_in(cache)) == 1
            assert os.listdir(cache) == []
    else:
        day = trident.open(path, cache=cache)
        len(day.bbo())
        assert len(open_in(cache)) == 1
        if end == "close":
            day.close()
        else:
            del day
            gc.collect()
    assert open_in(cache) == []
    assert os.listdir(cache) == []


def test_an_interrupted_first_pass_leaves_nothing_and_is_begun_again(own):
    path, cache = own
    calls = []

    def interrupt(*args):
        calls.append(args)
        if len(calls) == 1:
            raise KeyboardInterrupt

    day = trident.open(path, cache=cache, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        day.counts()
    assert open_in(cache) == []
    assert sum(day.counts().values()) == 6_000


@pytest.mark.parametrize("why", ["limit", "disk", "write"])
def test_without_room_the_input_is_read_each_time(own, monkeypatch, why):
    path, cache = own
    limit = 100_000 if why == "limit" else None
    if why == "disk":
        monkeypatch.setattr(event_file, "RESERVE_BYTES", 1 << 62)
    if why == "write":

        def full(*args):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(event_file.os, "pwrite", full)
    with trident.open(path, cache=cache, cache_bytes_max=limit) as day, trident.open(path) as other:
        with pytest.warns(RuntimeWarning, match="read again for each question"):
            rows = day.bbo(None).numpy()
        monkeypatch.undo()
        assert rows.tolist() == other.bbo().numpy().tolist()
        assert day.cache_bytes == 0
        assert open_in(cache) == []


def test_a_folder_that_cannot_be_used(own):
    path, cache = own
    with pytest.raises(UsageError, match=r"no cache can be kept in .*No such file"):
        trident.open(path, cache=cache / "not there").counts()


def test_the_folder_by_the_environment(own, monkeypatch):
    path, cache = own
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.setenv("TRIDENT_CACHE", str(cache))
    with trident.open(path) as day:
        len(day.bbo())
        assert len(open_in(cache)) == 1


def test_a_pipe_is_read_at_once_and_needs_the_cache(own):
    path, cache = own
    data = path.read_bytes()
    pipe = cache.parent / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(data))
    writer.start()
    with trident.open(pipe) as day, trident.open(path) as other:
        writer.join()
        assert day.session.date is None
        assert len(day.bbo(day.symbols[3])) == len(other.bbo(other.symbols[3]))


def test_event_file(tmp_path):
    file = EventFile(tmp_path, bytes_max=100)
    assert file.append(np.arange(10)) == 0
    with pytest.raises(NoRoomError, match="limit of 100 bytes"):
        file.append(np.arange(10))
    out = np.zeros(4, np.int64)
    file.read(24, out)
    assert out.tolist() == [3, 4, 5, 6]
    with pytest.raises(trident.TridentError, match="ends at 80"):
        file.read(64, out)
    assert not file.closed
    file.close()
    assert file.closed
    with pytest.raises(UsageError, match="closed"):
        file.read(0, out)


def test_too_many_duplicate_references_entangle_all(monkeypatch):
    from trident_core.day import entangled

    monkeypatch.setattr(entangled, "REFS_MAX", 3)
    events, effects = np.zeros(4, EVENT), np.zeros(4, EFFECT)
    events["type"], events["ref"] = ord("A"), range(4)
    effects["outcome"] = Outcome.DUPLICATE_REF
    known = Entangled()
    known.note(events[:3], effects[:3])
    assert known.closure(np.array([7], np.uint32)).tolist() == [7]
    known.note(events, effects)
    assert known.closure(np.array([7], np.uint32)) is None
    assert not known.refs
