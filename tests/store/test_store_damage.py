"""Bytes that change behind the store's back: each is told, none gives wrong data or a silent cut."""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import trident_store.logfiles
import trident_store.survey
from trident_core.dtypes import Events
from trident_core.errors import DamagedStoreError, StoreError
from trident_core.session import Session
from trident_store.crashcheck import PATH, make_events, read_all
from trident_store.crashmodel import CrashFileSystem, Disk
from trident_store.format import _FRAME, FRAME_MAGIC, Frame
from trident_store.mark import read_mark
from trident_store.reference import ReferenceStore

ACKED = "a3 s a14 a1 s"  # two segments, 18 events, all acknowledged
SEGMENTS = ("00000000.seg", "00000001.seg")


@dataclass
class Outcome:
    """What opening a store on some disk gave, in both modes."""

    read: Events | None = None  # None: refused
    append: Events | None = None
    refusals: list[StoreError] = field(default_factory=list)
    torn_bytes: int = 0
    findings: list[Any] = field(default_factory=list)


@pytest.fixture
def outcome(opener: Any) -> Any:
    def judge(disk: Disk) -> Outcome:
        result = Outcome()
        try:
            reader = opener("read", None, CrashFileSystem(disk))
            result.findings = reader.verify().findings
            result.read = read_all(reader)
        except StoreError as error:
            result.refusals.append(error)
        files = CrashFileSystem(disk)
        try:
            writer = opener("append", None, files)
        except StoreError as error:
            assert files.visible() == {"lock": b"", **disk}, "a refused store was changed"
            result.refusals.append(error)
            return result
        result.torn_bytes = writer.recovery.torn_bytes
        try:
            result.append = read_all(writer)
        except StoreError as error:
            result.refusals.append(error)
        return result

    return judge


def flip(disk: Disk, name: str, offset: int, bit: int | None = None) -> Disk:
    content = bytearray(disk[name])
    content[offset] ^= 1 << (offset % 8 if bit is None else bit)
    return disk | {name: bytes(content)}


# -- one flipped bit in every byte --


def _flips_of_segments(outcome: Any, disk: Disk, step: int) -> list[str]:
    """Flip every `step`th byte of the segments of a wholly acknowledged store; the first few unnoticed."""
    unnoticed: list[str] = []
    for name in SEGMENTS:
        for offset in range(0, len(disk[name]), step):
            if len(unnoticed) == 3:
                return unnoticed
            got = outcome(flip(disk, name, offset))
            told = [error for error in got.refusals if isinstance(error, DamagedStoreError)]
            if len(told) != 2 or any(error.file != name for error in told):
                unnoticed.append(f"{name} at {offset}: {got}")
            elif not any(f.severity == "error" and f.file == name for f in got.findings):
                unnoticed.append(f"{name} at {offset}: verify found {got.findings}")
            elif not told[0].offset <= offset:
                unnoticed.append(f"{name} at {offset}: told to be at {told[0].offset}")
    return unnoticed


def test_no_flip_in_acknowledged_bytes_goes_unnoticed(outcome: Any, disk_after: Any) -> None:
    disk = disk_after(ACKED)
    assert set(SEGMENTS) < set(disk)
    assert _flips_of_segments(outcome, disk, step=13) == []


@pytest.mark.slow
def test_no_flip_in_any_acknowledged_byte_goes_unnoticed(outcome: Any, disk_after: Any) -> None:
    assert _flips_of_segments(outcome, disk_after(ACKED), step=1) == []


def test_a_flip_in_the_mark_loses_nothing_and_is_told(outcome: Any, disk_after: Any, same: Any) -> None:
    disk = disk_after(ACKED)
    expected = make_events(0, 18)
    offsets = [*range(64), *range(64, 4096, 97), *range(4096, 4160), *range(4160, 8192, 97)]
    for offset in offsets[::3]:
        got = outcome(flip(disk, "durable", offset))
        assert same(got.read, expected)
        assert same(got.append, expected)
        assert [(f.file, f.severity) for f in got.findings] == [("durable", "note")], offset


def test_a_flip_in_the_mark_does_not_hide_another(outcome: Any, disk_after: Any) -> None:
    """Without the newest slot the older one is lower: what lies between must not pass for a torn tail."""
    disk = disk_after("a3 s a4 s")
    for slot in (0, 4096):
        for offset in range(0, len(disk["00000000.seg"]), 7):
            got = outcome(flip(flip(disk, "durable", slot + 40), "00000000.seg", offset))
            assert len(got.refusals) == 2
            assert all(isinstance(error, DamagedStoreError) for error in got.refusals)


def test_flips_behind_the_mark_leave_a_prefix(outcome: Any, disk_after: Any, same: Any) -> None:
    disk = disk_after("a3 s a6")  # six of nine events were never acknowledged
    size = len(disk["00000000.seg"])
    acked_end = read_mark(CrashFileSystem(disk), PATH).at.offset
    seen = set()
    for offset in range(0, size, 5):
        got = outcome(flip(disk, "00000000.seg", offset))
        if got.refusals:
            assert len(got.refusals) == 2
            assert offset < acked_end
        else:
            assert offset >= acked_end
            assert 3 <= len(got.read) < 9
            assert same(got.read, make_events(0, len(got.read)))
            assert same(got.append, got.read)
            assert 0 < got.torn_bytes <= size - acked_end
            assert [f.severity for f in got.findings] == ["note"]
            seen.add(len(got.read))
    assert seen == {3, 5, 7}


def test_the_flip_test_catches_an_unchecked_header(
    outcome: Any, disk_after: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unchecked(store_id: bytes, data: bytes) -> Frame | None:
        if data[:4] != FRAME_MAGIC:
            return None
        _, kind, _, *rest = _FRAME.unpack(data[:60])
        return Frame(kind, *rest)

    for module in (trident_store.survey, trident_store.logfiles):
        monkeypatch.setattr(module, "decode_frame", unchecked)
    assert _flips_of_segments(outcome, disk_after(ACKED), step=5)


def test_the_flip_test_catches_a_recovery_that_cuts_at_damage(
    outcome: Any, disk_after: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if the mark had never been moved on since the store was created."""
    first = read_mark(CrashFileSystem(disk_after("")), PATH)
    monkeypatch.setattr(trident_store.survey, "read_mark", lambda files, folder, forget=False: first)
    assert _flips_of_segments(outcome, disk_after(ACKED), step=5)


# -- what is said --


def test_damage_names_file_offset_and_events(opener: Any, disk_after: Any) -> None:
    disk = disk_after(ACKED)
    offset = disk["00000000.seg"].rindex(make_events(8, 1).tobytes())  # event 8 is the first of its frame
    store = opener("read", None, CrashFileSystem(flip(disk, "00000000.seg", offset)))
    snapshot = store.snapshot()  # payloads before the mark are checked when they are read
    with pytest.raises(DamagedStoreError, match=r"events 7 to 8 are affected") as caught:
        list(snapshot.scan())
    assert (caught.value.file, caught.value.first, caught.value.last) == ("00000000.seg", 7, 8)
    assert "trident verify" in caught.value.hint
    found = store.verify()
    assert not found.ok
    assert (found.events, found.last_seq) == (7, 13)
    assert [(f.offset, f.first, f.last) for f in found.findings] == [(caught.value.offset, 7, 8)]


def test_a_scan_gives_out_what_comes_before_damage_only(opener: Any, disk_after: Any, same: Any) -> None:
    disk = disk_after(ACKED)
    offset = disk["00000000.seg"].rindex(make_events(8, 1).tobytes())
    snapshot = opener("read", None, CrashFileSystem(flip(disk, "00000000.seg", offset))).snapshot()
    got = []
    with pytest.raises(DamagedStoreError):
        got.extend(snapshot.scan(batch=1))
    assert same(got, make_events(0, 7))
    assert same(snapshot.scan(seq=(None, 13)), make_events(0, 7))  # a scan that ends before it is served
    with pytest.raises(DamagedStoreError):
        snapshot.get(7 * 4 + 3)


def test_verify_goes_on_behind_damage(opener: Any, disk_after: Any) -> None:
    disk = disk_after("a3 s a14 a1 s a15 s")
    places = []
    for event in (5, 17, 30):
        name = next(n for n in disk if make_events(event, 1).tobytes() in disk[n])
        places.append(name)
        disk = flip(disk, name, disk[name].index(make_events(event, 1).tobytes()))
    assert len(set(places)) == 3
    found = opener("read", None, CrashFileSystem(disk)).verify()
    assert [(f.first, f.last) for f in found.findings] == [(5, 6), (17, 17), (30, 31)]
    assert found.bytes == sum(len(content) for name, content in disk.items() if name.endswith(".seg"))


def test_verify_finds_the_next_frame_behind_a_lost_header(opener: Any, disk_after: Any) -> None:
    disk = disk_after(ACKED)
    offset = disk["00000000.seg"].index(make_events(5, 1).tobytes()) - 64
    found = opener("read", None, CrashFileSystem(flip(disk, "00000000.seg", offset))).verify()
    assert [(f.offset, f.first, f.last) for f in found.findings] == [(offset, 5, 6)]


# -- whole files --


def test_files_cut_short_anywhere(outcome: Any, disk_after: Any, same: Any) -> None:
    disk = disk_after("a3 s a14 a1 s a5")
    whole = make_events(0, 23)
    mark = 18  # acknowledged
    for name in SEGMENTS:
        for size in range(0, len(disk[name]), 24):
            got = outcome(disk | {name: disk[name][:size]})
            if got.refusals:
                assert len(got.refusals) == 2
                assert all(isinstance(error, DamagedStoreError) for error in got.refusals)
            else:
                assert name == SEGMENTS[1]
                assert mark <= len(got.read) < 23
                assert same(got.read, whole[: len(got.read)])
                assert same(got.append, got.read)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda d: {n: c for n, c in d.items() if n != "00000001.seg"}, r"missing before 00000002\.seg"),
        (lambda d: {n: c for n, c in d.items() if n != "00000000.seg"}, r"missing before 00000001\.seg"),
        (lambda d: {n: c for n, c in d.items() if n != "00000002.seg"}, r"is known to reach .*00000002\.seg"),
        (lambda d: {n: c for n, c in d.items() if not n.endswith(".seg")} , r"not a store|known to reach"),
        (lambda d: {n: c for n, c in d.items() if n != "durable"}, r"the mark .* is missing"),
        (lambda d: d | {"durable": bytes(8192)}, r"the mark .* is missing"),
        (
            lambda d: d | {"00000000.seg": d["00000001.seg"], "00000001.seg": d["00000000.seg"]},
            r"the file holds segment 1",
        ),
        (lambda d: d | {"00000002.seg": d["00000001.seg"]}, r"the file holds segment 1"),
        (lambda d: d | {"00000003.seg": d["00000002.seg"]}, r"the file holds segment 2"),
        (lambda d: d | {"00000007.seg": d["00000002.seg"]}, r"segments are missing before 00000007"),
    ],
    ids=[
        "middle missing", "first missing", "last missing", "all missing", "mark missing", "mark zeroed",
        "swapped", "doubled over", "doubled behind", "renumbered",
    ],
)  # fmt: skip
def test_files_missing_swapped_or_doubled(outcome: Any, disk_after: Any, change: Any, problem: str) -> None:
    got = outcome(change(disk_after("a3 s a14 a1 s a15 s")))
    assert len(got.refusals) == 2
    for error in got.refusals:
        assert re.search(problem, str(error)), str(error)
    assert got.findings == [] or any(f.severity == "error" for f in got.findings)


def test_frames_of_another_place_do_not_pass(outcome: Any, disk_after: Any) -> None:
    """Frames that check, copied over others: the same ordinal twice, one left out, an older epoch."""
    disk = disk_after(ACKED)
    content = disk["00000000.seg"]
    frames = [content.index(make_events(i, 1).tobytes()) - 64 for i in (3, 5, 7)]
    doubled = content[: frames[1]] + content[frames[0] : frames[0] + 192] + content[frames[2] :]
    left_out = content[: frames[1]] + content[frames[2] :]
    for changed in (doubled, left_out):
        got = outcome(disk | {"00000000.seg": changed})
        assert len(got.refusals) == 2
        assert all("stands in the wrong place" in str(error) for error in got.refusals)


def test_a_segment_of_another_store_does_not_pass(outcome: Any, disk_after: Any) -> None:
    disk = disk_after(ACKED)
    files = CrashFileSystem(exists=False)
    with ReferenceStore(
        PATH, "create", Session(), segment_bytes=2048, sector_bytes=512, frame_events=2,
        store_id=b"another store 16", filesystem=files,
    ) as other:  # fmt: skip
        other.append(make_events(0, 18))
    got = outcome(disk | {"00000001.seg": files.visible()["00000001.seg"]})
    assert len(got.refusals) == 2
    assert all("of another store" in str(error) for error in got.refusals)


def test_an_older_mark_is_enough(outcome: Any, disk_after: Any, same: Any) -> None:
    """The mark of a backup made earlier: everything is there, only the floor is lower."""
    got = outcome(disk_after(ACKED) | {"durable": disk_after("a3 s")["durable"]})
    assert same(got.read, make_events(0, 18))
    assert same(got.append, make_events(0, 18))


def test_a_newer_mark_tells_what_a_restored_segment_lacks(outcome: Any, disk_after: Any) -> None:
    old = disk_after("a3 s")
    got = outcome({**old, "durable": disk_after("a3 s a2 s")["durable"]})
    assert len(got.refusals) == 2
    assert all("events 3 to 4 are affected" in str(error) for error in got.refusals)


@pytest.mark.parametrize("name", ["00000000.seg", "00000001.seg", "durable"])
@pytest.mark.parametrize("what", ["fifo", "folder", "endless", "loop"])
def test_what_is_no_file_in_a_files_place(tmp_path: Path, name: str, what: str) -> None:
    """Reported at once: nothing waits for a FIFO, nor reads a device to its end."""
    if (name, what) == ("00000001.seg", "endless"):
        pytest.skip("a device has size 0: the same as an empty segment that a crash left")
    store = ReferenceStore(tmp_path / "store", "create", Session())
    store.append(make_events(0, 3))
    store.close()
    place = tmp_path / "store" / name
    place.unlink(missing_ok=True)
    if what == "fifo":
        os.mkfifo(place)
    elif what == "folder":
        place.mkdir()
    else:
        place.symlink_to("/dev/zero" if what == "endless" else place)
    with contextlib.suppress(StoreError):  # it may refuse to open at all
        assert not ReferenceStore(tmp_path / "store", "read").verify().ok
    with pytest.raises(StoreError):
        ReferenceStore(tmp_path / "store", "append")
