"""The engine lmdb: the reader of LMDB's file."""

from __future__ import annotations

import random
import struct
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lmdb")

from trident_core.dtypes import EVENT, Events
from trident_core.errors import DamagedStoreError, StoreError
from trident_core.session import Session
from trident_store.blocks.lmdb import LmdbStore
from trident_store.blocks.lmdb_file import LmdbFile
from trident_store.crashcheck import make_events

PAGE = 4_096


def scanned(snapshot: Any) -> Events:
    return np.concatenate([np.empty(0, EVENT), *snapshot.scan()])


def small(folder: Path, commits: int) -> Path:
    store = LmdbStore(folder, "create", Session())
    for at in range(commits):
        store.append(make_events(3 * at, 3))
        store.sync()
    store.close()
    return folder


def test_free_lists_over_many_transactions(tmp_path: Path) -> None:
    """Their keys are numbers in the machine's order: 256 comes after 255. Blocks never move."""
    store = LmdbStore(tmp_path / "s", "create", Session())
    file = LmdbFile(tmp_path / "s" / "lmdb" / "data.mdb", "data.mdb")
    places: list[tuple[str, int]] = []
    for at in range(300):
        store.append(make_events(3 * at, 3))
        store.sync()
        if at % 20 == 0 or 245 < at < 265:
            assert file.check() == []
        places.append(file.place(at + 1))
    assert places == [file.place(at + 1) for at in range(300)]
    assert len({offset for _, offset in places}) == 300
    store.close()
    again = LmdbStore(tmp_path / "s", "append")
    assert again.recovery.events == 900
    again.close()


def test_readers_beside_a_writer(tmp_path: Path) -> None:
    """No lock, no reader table: every snapshot is a prefix, and at least what was durable before it."""
    store = LmdbStore(tmp_path / "s", "create", Session())
    durable, wrong, done = [0], [], threading.Event()
    whole = make_events(0, 300).tobytes()

    def read() -> None:
        while not done.is_set():
            least = durable[0]
            reader = LmdbStore(tmp_path / "s", "read")
            found = scanned(reader.snapshot())
            reader.close()
            if len(found) < least or found.tobytes() != whole[: found.nbytes]:
                wrong.append(f"{len(found)} events, {least} were durable")

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for at in range(100):
            store.append(make_events(3 * at, 3))
            store.sync()
            durable[0] = 3 * at + 3
    finally:
        done.set()
        thread.join()
    store.close()
    assert wrong == []


@pytest.mark.parametrize("size", [0, 100, PAGE, 2 * PAGE + 7, -1])
def test_a_file_cut_short(tmp_path: Path, size: int) -> None:
    """LMDB would end the process (SIGBUS) at the first page that is not there."""
    path = small(tmp_path / "s", 4) / "lmdb" / "data.mdb"
    data = path.read_bytes()
    path.write_bytes(data[:size])
    with pytest.raises(DamagedStoreError, match=r"data\.mdb"):
        LmdbStore(tmp_path / "s", "append")
    assert path.read_bytes() == data[:size]


def test_bits_of_the_pages_that_lmdb_believes(tmp_path: Path) -> None:
    """Meta pages, branches, leaves, lists of free pages: refused, or harmless for reading and going on."""
    path = small(tmp_path / "s", 9) / "lmdb" / "data.mdb"
    data, pick, refused = path.read_bytes(), random.Random(4), 0
    pages = [
        n for n in range(len(data) // PAGE) if struct.unpack_from("<H", data, n * PAGE + 10)[0] in (2, 8)
    ]
    spots = [n * PAGE + i for n in pages for i in range(PAGE) if data[n * PAGE + i]]
    mark = (tmp_path / "s" / "durable").read_bytes()
    for at in pick.sample(spots, 60):
        spoiled = bytearray(data)
        spoiled[at] ^= 1 << pick.randrange(8)
        path.write_bytes(spoiled)
        (tmp_path / "s" / "durable").write_bytes(mark)
        try:
            with LmdbStore(tmp_path / "s", "append") as store:
                assert store.recovery.events == 27
                store.append(make_events(27, 3))
                store.sync()
                store.append(make_events(30, 3))
        except StoreError:
            refused += 1
            continue
        reader = LmdbStore(tmp_path / "s", "read")
        assert scanned(reader.snapshot()).tobytes() == make_events(0, 33).tobytes(), f"byte {at}"
        assert reader.verify().ok
        reader.close()
    assert 10 < refused < 60
