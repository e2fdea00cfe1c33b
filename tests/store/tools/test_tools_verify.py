"""Verify: tables whose every byte checks and whose indexes lie; findings with sequence numbers and advice."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.session import Session
from trident_store.crashcheck import PATH, make_events
from trident_store.crashmodel import CrashFileSystem, Disk
from trident_store.format import Position, encode_json
from trident_store.lsm import kernels, table_writer
from trident_store.lsm.layout import Shape
from trident_store.lsm.table_writer import Content, Meta, content_of, write_table
from trident_store.reference import ReferenceStore
from trident_store.tables import Table
from trident_store.tools.flips import small_store
from trident_store.tools.scratch import ScratchFiles
from trident_store.tools.table_check import TableCheck
from trident_store.tools.verify import verify

ID, SHAPE = bytes(range(16)), Shape(8, 16, 8)


def events() -> Any:
    made = make_events(0, 70)
    made["locate"] %= 5
    made["ref"] %= 40
    return made


def checked(content: Content) -> list[str]:
    """What the check says of a table of this content, all of whose CRCs are right."""
    scratch: Any = ScratchFiles()
    meta = Meta(ID, 3, 0, 1, 0, Position(1), encode_json(Session().to_json()))
    entry = write_table(scratch, Path(), meta, content, SHAPE)
    files = CrashFileSystem({"00000003.tab": bytes(scratch.data["00000003.tab"])})
    table = Table(files, PATH, ID, entry)
    assert list(table.findings()) == []
    return [each.problem.partition(":")[0] for each in TableCheck(table).findings()]


def test_a_right_table_is_right() -> None:
    assert checked(content_of(events(), SHAPE)) == []
    without = events()
    without["ref"], without["ref2"] = 0, 0
    assert checked(content_of(without, SHAPE)) == []


def swapped_order(content: Content) -> Content:
    index = content.seq_index.copy()
    index[[5, 6]] = index[[6, 5]]
    return content._replace(seq_index=index)


def twice_in_order(content: Content) -> Content:
    index = content.seq_index.copy()
    index[5] = index[6]
    return content._replace(seq_index=index)


def beyond(content: Content) -> Content:
    index = content.seq_index.copy()
    index[5] = 4_000_000_000
    return content._replace(seq_index=index)


def shifted_run(content: Content) -> Content:
    runs = content.runs.copy()
    runs["start"][1] += 1
    return content._replace(runs=runs)


def false_window(content: Content) -> Content:
    windows = content.windows.copy()
    windows["max_ts"][1] += 1
    return content._replace(windows=windows)


def refs_of(content: Content) -> tuple[Any, Any]:
    ((refs, positions),) = content.refs
    return refs.copy(), positions.copy()


def lost_reference(content: Content) -> Content:
    refs, positions = refs_of(content)
    keep = np.arange(len(refs)) != 17
    return content._replace(refs=[(refs[keep], positions[keep])], ref_count=len(refs) - 1)


def wrong_position(content: Content) -> Content:
    refs, positions = refs_of(content)
    positions[9] = (positions[9] + 1) % content.count
    return content._replace(refs=[(refs, positions)])


def doubled_reference(content: Content) -> Content:
    refs, positions = refs_of(content)
    refs[10], positions[10] = refs[9], positions[9]
    return content._replace(refs=[(refs, positions)])


@pytest.mark.parametrize(
    ("lie", "section"),
    [
        (swapped_order, "SEQ_INDEX"), (twice_in_order, "SEQ_INDEX"), (beyond, "SEQ_INDEX"),
        (shifted_run, "BLOCKS"), (false_window, "SEQ_INDEX"), (lost_reference, "REFS"),
        (wrong_position, "REFS"), (doubled_reference, "REFS"),
    ],
)  # fmt: skip
def test_an_index_that_lies_is_noticed(lie: Callable[[Content], Content], section: str) -> None:
    assert section in checked(lie(content_of(events(), SHAPE)))


@pytest.mark.parametrize("lie", ["no bits", "all bits"])
def test_a_filter_that_lies_is_noticed(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def add(refs: Any, bloom: Any) -> None:
        bloom[:] = np.uint64(0 if lie == "no bits" else (1 << 64) - 1)

    monkeypatch.setattr(kernels, "bloom_add", add)
    content = content_of(events(), SHAPE)
    assert checked(content) == (["REFS"] if lie == "no bits" else ["BLOOM"])


@pytest.mark.parametrize("name", ["min_seq", "max_seq", "min_ts", "max_ts", "min_price", "max_locate"])
def test_a_zone_map_that_lies_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = table_writer.TableWriter._write_blocks

    def write_blocks(self: Any) -> Any:
        yield from real(self)
        self.info[name][2] += 1

    monkeypatch.setattr(table_writer.TableWriter, "_write_blocks", write_blocks)
    assert checked(content_of(events(), SHAPE)) == ["BLOCK_INFO"]


def test_events_out_of_place_are_noticed() -> None:
    content = content_of(events(), SHAPE)
    whole = np.concatenate([blocks.copy() for blocks in content.blocks])
    size = SHAPE.block_events * 64
    blocks = [whole[start : start + size] for start in range(0, len(whole), size)]
    blocks[3], blocks[4] = blocks[4], blocks[3]
    assert "BLOCKS" in checked(content._replace(blocks=blocks))


def test_findings_say_where_in_the_sequence_and_what_to_do(disk_after: Callable[[str], Disk]) -> None:
    disk = disk_after("a9 s a7 s")
    name = sorted(n for n in disk if n.endswith(".seg"))[0]
    at = [i for i in range(64, len(disk[name]), 64) if disk[name][i : i + 5] == b"TFRM\x01"][1]
    data = bytearray(disk[name])
    data[at + 64] ^= 1
    report = verify(CrashFileSystem(dict(disk) | {name: bytes(data)}), PATH, lambda done, total: None)
    (finding,) = report.findings
    assert (finding.file, finding.offset, finding.first, finding.last) == (name, at, 2, 3)
    assert finding.seqs == (5, 8)
    assert "salvage" in finding.hint


def test_progress_reaches_the_end() -> None:
    disk, told = small_store(), []
    report = verify(CrashFileSystem(disk), PATH, lambda done, total: told.append((done, total)))
    assert report.ok
    assert told == sorted(told)
    assert told[-1][0] == told[-1][1] > report.bytes
    assert report.checked["tables"] == 2


def test_a_store_verifies_itself_the_same_way(tmp_path: Path) -> None:
    with ReferenceStore(tmp_path / "s", "create", Session()) as store:
        store.append(make_events(0, 9))
        assert dataclasses.asdict(store.verify_watched(lambda done, total: None)) == dataclasses.asdict(
            store.verify()
        )
