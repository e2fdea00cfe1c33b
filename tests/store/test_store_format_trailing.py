"""The bytes of formats 1.2 and 1.3: a golden store as a kill left it, written once and kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from trident_core.session import Instrument, Session
from trident_store.crashcheck import make_events, read_all
from trident_store.filesystem import OsFileSystem
from trident_store.format import RECORD_BYTES, decode_frame
from trident_store.lsm.engine import LsmStore
from trident_store.lsm.layout import Shape
from trident_store.mark import read_mark
from trident_store.reference import ReferenceStore

GOLDEN = Path(__file__).parent / "golden" / "1.3"
STORE_ID = bytes(range(100, 116))
OPTIONS: dict[str, Any] = {
    "segment_bytes": 4_096, "sector_bytes": 512, "frame_events": 8, "background": False, "fanout": 2,
    "shape": Shape(block_events=16, window_events=32, page_refs=8), "mark": "trailing", "spare_segments": 2,
}  # fmt: skip


def write_golden(folder: Path, killed: Path) -> None:
    """Segments made of used files, a mark that trails, settled frames, tables behind, an append that was not
    synced. Never change this: add another."""
    with LsmStore(folder, "create", Session(), store_id=STORE_ID, **OPTIONS) as store:
        store.session.directory.put(Instrument(1, "AAPL", {"round_lot": 100}))
        for first in range(0, 160, 20):
            store.append(make_events(first, 20))
            store.sync()
        for first in range(160, 169, 3):
            store.append(make_events(first, 3))
            store.sync()
        store.append(make_events(169, 10))
        shutil.copytree(folder, killed, ignore=lambda *_: ["lock"])


def files_of(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name != "lock"}


def test_the_golden_store_is_written(tmp_path: Path) -> None:
    write_golden(tmp_path / "s", tmp_path / "killed")
    assert files_of(tmp_path / "killed") == files_of(GOLDEN)


@pytest.mark.parametrize("engine", [LsmStore, ReferenceStore])
def test_the_golden_store_is_read_and_recovered(tmp_path: Path, engine: Any, same: Any) -> None:
    reader = engine(GOLDEN, "read")
    assert same(read_all(reader), make_events(0, 179))
    assert [each.severity for each in reader.verify().findings] == ["note"]
    folder = tmp_path / "s"
    shutil.copytree(GOLDEN, folder)
    with engine(folder, "append", segment_bytes=4_096, sector_bytes=512) as store:
        assert store.recovery.torn_bytes > 0
        store.append(make_events(179, 50))
    again = ReferenceStore(folder, "read")
    assert same(read_all(again), make_events(0, 229))
    assert again.verify().findings == []
    assert not list(folder.glob("*.old"))


def test_its_last_segment_is_as_the_document_says() -> None:
    """Settled frames stand where syncs were; behind the log there is what the file held before."""
    mark = read_mark(OsFileSystem(), GOLDEN)
    assert mark.minor == 3
    assert mark.at is not None
    content = max(path for path in GOLDEN.iterdir() if path.suffix == ".seg").read_bytes()
    frames, at = [], RECORD_BYTES
    while (frame := decode_frame(STORE_ID, content[at : at + RECORD_BYTES])) is not None:
        if frame.segment != mark.at.segment:
            break
        frames.append(frame)
        at = frame.after().offset
    settled = [frame.offset for frame in frames if frame.settled]
    assert settled[-1] == mark.at.offset
    assert all(offset % 512 == 0 for offset in settled)
    assert 1 < len(settled) < len(frames)
    assert any(content[at:])
