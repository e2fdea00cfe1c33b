"""Block stores over an engine in memory, which loses and refuses what it is told to."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest

from trident_core.contracts import Snapshot
from trident_core.dtypes import EVENT, Events
from trident_core.errors import DamagedStoreError, StoreError
from trident_core.session import Instrument, Session
from trident_store.blocks.engine import EngineError
from trident_store.blocks.format import HEADER_BYTES, End, chain_problem, decode_block, encode_block
from trident_store.blocks.mark import SLOT_BYTES, read_marks
from trident_store.blocks.store import BlockStore
from trident_store.crashcheck import make_events
from trident_store.filesystem import OsFileSystem
from trident_store.format import FrameKind


class Memory:
    """An engine in memory that fails, or is interrupted, where it is told to."""

    name = "memory"
    torn, hint = (0, ""), 0

    def __init__(self) -> None:
        self.blocks: dict[int, bytes] = {}
        self.before: BaseException | None = None  # raised by the next commit, before it is made
        self.after: BaseException | None = None

    def create(self, folder: Path) -> Memory:
        folder.mkdir()
        return self

    def view(self, folder: Path, hint: int) -> Memory:
        return self

    def write(self, folder: Path, hint: int) -> Memory:
        return self

    def get(self, number: int) -> bytes | None:
        return self.blocks.get(number)

    def place(self, number: int) -> tuple[str, int]:
        return "memory", 0

    def check(self) -> list[EngineError]:
        return []

    def commit(self, first: int, blocks: Sequence[bytes]) -> None:
        before, self.before = self.before, None
        if before:
            raise before
        for number, block in enumerate(blocks, first):
            assert number not in self.blocks, "a block was written twice"
            self.blocks[number] = block
        after, self.after = self.after, None
        if after:
            raise after

    def close(self) -> None: ...


@pytest.fixture
def memory() -> Memory:
    return Memory()


@pytest.fixture
def made(memory: Memory) -> type[BlockStore]:
    return type("MemoryStore", (BlockStore,), {"engine": memory})


def scanned(snapshot: Snapshot, **filters: Any) -> Events:
    return np.concatenate([np.empty(0, EVENT), *snapshot.scan(**filters)])


def flip(path: Path, at: int, mask: int = 0x40) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= mask
    path.write_bytes(data)


class TestBlocks:
    ID = bytes(16)

    def block(self, here: End, first: int = 1) -> tuple[bytes, End]:
        events = make_events(first, 3)
        events["seq"] = [first, first + 1, first + 2]
        return encode_block(self.ID, here, FrameKind.EVENTS, 3, first, first + 2, events.tobytes())

    def test_every_bit_is_covered(self) -> None:
        value, _ = self.block(End())
        assert decode_block(self.ID, value, 0)[1] == ""
        for bit in range(len(value) * 8):
            spoiled = bytearray(value)
            spoiled[bit // 8] ^= 1 << bit % 8
            assert decode_block(self.ID, bytes(spoiled), 0)[1], f"bit {bit}"

    def test_cut_moved_and_foreign(self) -> None:
        value, _ = self.block(End())
        for size in range(len(value)):
            assert decode_block(self.ID, value[:size], 0)[1], f"cut to {size}"
        assert "in the place of" in decode_block(self.ID, value, 1)[1]
        assert "another store's" in decode_block(bytes(15) + b"x", value, 0)[1]
        assert decode_block(self.ID, value + bytes(100), 0)[1] == ""  # an engine may fill up a page

    def test_the_chain_names_the_block_before(self) -> None:
        one, end = self.block(End())
        two, _ = self.block(end, 4)
        other, other_end = self.block(End(), 2)
        follower, problem = decode_block(self.ID, two, 1)
        assert follower is not None and not problem  # noqa: PT018
        assert chain_problem(follower, end) == ""
        assert "does not continue" in chain_problem(follower, other_end)
        assert one[HEADER_BYTES:] != other[HEADER_BYTES:]


def documented(table: str, size: int) -> dict[str, tuple[int, str]]:
    """Fields of a table of docs/store-engines.md: name -> (offset, type); no gap, `size` bytes."""
    page = (Path(__file__).parents[2] / "docs" / "store-engines.md").read_text()
    tables = dict(re.findall(r"<!-- (\w+) -->\n\n\|.*?\|\n\|[-| ]+\|\n((?:\|.*\|\n)+)", page))
    found, end = {}, 0
    for row in tables[table].splitlines():
        offset, kind, name = [cell.strip() for cell in row.split("|")[1:4]]
        assert int(offset) == end, f"{table}.{name} leaves a gap"
        found[name] = (end, kind)
        end += int(kind.removesuffix(" bytes")) if "bytes" in kind else int(kind[1:]) // 8
    assert end == size
    return found


def field(data: bytes, at: tuple[int, str]) -> Any:
    offset, kind = at
    if "bytes" in kind:
        return data[offset : offset + int(kind.removesuffix(" bytes"))]
    return int.from_bytes(data[offset : offset + int(kind[1:]) // 8], "little")


def test_every_field_stands_where_the_document_says(
    made: type[BlockStore], memory: Memory, tmp_path: Path
) -> None:
    session = Session()
    session.directory.put(Instrument(1, "A"))
    store = made(tmp_path / "s", "create", session, store_id=bytes(range(16)))
    store.append(make_events(0, 30))
    store.close()
    before, value = memory.blocks[1], memory.blocks[2]
    block = {name: field(value, at) for name, at in documented("block", 64).items()}
    last = field(before, documented("block", 64)["crc"])
    assert block == {
        "magic": b"TBLK", "kind": 1, "version": 1, "count": 30, "chain": last, "number": 2, "ordinal": 0,
        "first seq": 1, "last seq": 59, "meta": 1, "payload bytes": 1_920,
        "payload crc": google_crc32c.value(value[64:]),
        "crc": google_crc32c.value(bytes(range(16)) + value[:60]),
    }  # fmt: skip
    slots = (tmp_path / "s" / "durable").read_bytes()
    places = documented("mark", 84)
    one, two = ({name: field(slots[start:], at) for name, at in places.items()} for start in (0, 4_096))
    mark = one if one["turn"] > two["turn"] else two
    assert mark | {"crc": 0} == {
        "magic": b"TBLKMARK", "major": 1, "minor": 0, "chain": block["crc"], "store id": bytes(range(16)),
        "blocks": 3, "ordinal": 30, "last seq": 59, "meta": 1, "hint": 0,
        "turn": max(one["turn"], two["turn"]), "crc": 0,
    }  # fmt: skip
    assert abs(one["turn"] - two["turn"]) == 1
    assert (one["turn"] % 2, two["turn"] % 2) == (0, 1)
    start = 4_096 if mark is two else 0
    assert mark["crc"] == google_crc32c.value(slots[start : start + 80])


class TestWaiting:
    def test_nothing_is_committed_unasked_before_its_time(
        self, made: type[BlockStore], memory: Memory, tmp_path: Path
    ) -> None:
        store = made(tmp_path / "s", "create", Session(), commit_blocks=2)
        events = np.zeros(3 * 4096, EVENT)
        events["seq"] = np.arange(1, len(events) + 1)
        store.append(events[:4096])
        assert (len(memory.blocks), store.stats()["durable_seq"]) == (1, 0)
        store.append(events[4096:8000])
        assert len(memory.blocks) == 1
        store.append(events[8000:9000])
        assert (len(memory.blocks), store.stats()["durable_seq"]) == (3, 8192)
        assert scanned(store.snapshot()).tobytes() == events[:9000].tobytes()
        assert store.sync() == 9000
        assert [len(b) // 64 - 1 for n, b in memory.blocks.items() if n] == [4096, 4096, 808]
        store.close()

    @pytest.mark.parametrize("when", ["before", "after"])
    def test_an_interrupted_commit_is_made_once(
        self, made: type[BlockStore], memory: Memory, tmp_path: Path, when: str
    ) -> None:
        """STORE-6: whether the interrupt came before or after the engine's commit."""
        store = made(tmp_path / "s", "create", Session())
        events = make_events(0, 300)
        store.append(events[:100])
        setattr(memory, when, KeyboardInterrupt())
        with pytest.raises(KeyboardInterrupt):
            store.sync()
        assert store.stats()["durable_seq"] == 0
        store.append(events[100:200])
        assert store.sync() == events["seq"][199]
        store.append(events[200:])
        store.close()
        again = made(tmp_path / "s", "append")
        assert scanned(again.snapshot()).tobytes() == events.tobytes()
        assert again.verify().ok
        again.close()

    @pytest.mark.parametrize("fault", [EngineError("no"), OSError(errno.EIO, "Input/output error")])
    def test_a_failed_commit_is_the_last(
        self, made: type[BlockStore], memory: Memory, tmp_path: Path, fault: BaseException
    ) -> None:
        """STORE-14, 15: it may have reached the disk or not; never tried again, never called durable."""
        store = made(tmp_path / "s", "create", Session())
        events = make_events(0, 30)
        store.append(events[:10])
        store.sync()
        store.append(events[10:20])
        memory.before = fault
        with pytest.raises(StoreError, match="cannot write"):
            store.sync()
        for call in (store.sync, lambda: store.append(events[20:])):
            with pytest.raises(StoreError, match="read-only"):
                call()
        assert store.stats()["durable_seq"] == events["seq"][9]
        assert len(scanned(store.snapshot())) == 20
        store.close()
        again = made(tmp_path / "s", "append")
        assert again.recovery.events == 10
        again.close()

    def test_a_failed_creation_leaves_nothing(
        self, made: type[BlockStore], memory: Memory, tmp_path: Path
    ) -> None:
        memory.before = EngineError("no room")
        with pytest.raises(StoreError, match="no room"):
            made(tmp_path / "s", "create", Session())
        assert os.listdir(tmp_path / "s") == []

    def test_a_creation_cut_off(self, made: type[BlockStore], memory: Memory, tmp_path: Path) -> None:
        """STORE-22: told apart from damage by what is not there: a mark and events."""
        made(tmp_path / "s", "create", Session()).close()
        (tmp_path / "s" / "durable").unlink()
        for mode in ("read", "append"):
            with pytest.raises(StoreError, match="never finished") as caught:
                made(tmp_path / "s", mode)
            assert not isinstance(caught.value, DamagedStoreError)


class TestMemoryDamage:
    """What each loss of an engine looks like, with an engine that does as it is told."""

    def damaged(self, made: type[BlockStore], folder: Path) -> DamagedStoreError:
        with pytest.raises(DamagedStoreError) as caught:
            made(folder, "append")
        reader = made(folder, "read")
        assert not reader.verify().ok
        with pytest.raises(DamagedStoreError):
            scanned(reader.snapshot())
        reader.close()
        return caught.value

    @pytest.fixture
    def folder(self, made: type[BlockStore], tmp_path: Path) -> Path:
        store = made(tmp_path / "s", "create", Session())
        for start in range(0, 50, 10):
            store.append(make_events(start, 10))
            store.sync()
        store.close()
        return tmp_path / "s"

    def test_a_lost_tail(self, made: type[BlockStore], memory: Memory, folder: Path) -> None:
        del memory.blocks[5]
        error = self.damaged(made, folder)
        assert (error.first, error.last) == (40, 49)

    def test_a_lost_block(self, made: type[BlockStore], memory: Memory, folder: Path) -> None:
        del memory.blocks[2]
        error = self.damaged(made, folder)
        assert (error.first, error.last) == (10, 19)

    def test_swapped_and_doubled(self, made: type[BlockStore], memory: Memory, folder: Path) -> None:
        kept = dict(memory.blocks)
        memory.blocks |= {2: kept[3], 3: kept[2]}
        assert "in the place of" in str(self.damaged(made, folder))
        memory.blocks = kept | {3: kept[2]}
        self.damaged(made, folder)

    def test_an_older_block_of_the_same_place(
        self, made: type[BlockStore], memory: Memory, folder: Path, tmp_path: Path
    ) -> None:
        """A sound block of the same number, events and seqs, but with other prices: the chain shows it."""
        store_id = read_marks(OsFileSystem(), folder).mark
        assert store_id is not None
        mine = dict(memory.blocks)
        memory.blocks = {}
        other = made(tmp_path / "other", "create", Session(), store_id=store_id.store_id)
        for start in range(0, 50, 10):
            events = make_events(start, 10)
            events["price"] += 1
            other.append(events)
            other.sync()
        other.close()
        theirs = memory.blocks
        memory.blocks = mine | {2: theirs[2]}
        assert "does not continue" in str(self.damaged(made, folder))
        memory.blocks = mine | {5: theirs[5]}
        assert "does not continue" in str(self.damaged(made, folder))

    def test_each_slot_of_the_mark(self, made: type[BlockStore], memory: Memory, folder: Path) -> None:
        """One bad slot is told and mended, two are damage."""
        flip(folder / "durable", 3)
        reader = made(folder, "read")
        verification = reader.verify()
        assert verification.ok
        assert [finding.severity for finding in verification.findings] == ["note"]
        reader.close()
        made(folder, "append").close()
        assert read_marks(OsFileSystem(), folder).bad_slots == ()
        flip(folder / "durable", 3)
        flip(folder / "durable", SLOT_BYTES + 90)
        assert "mark" in str(self.damaged(made, folder))
