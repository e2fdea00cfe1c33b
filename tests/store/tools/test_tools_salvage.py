"""Salvage: what is provably right, in order, and every gap told."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from trident_core.dtypes import Events
from trident_core.errors import StoreError
from trident_core.session import Session
from trident_store.crashcheck import PATH, read_all
from trident_store.crashmodel import CrashFileSystem, Disk
from trident_store.reference import ReferenceStore
from trident_store.tools.flips import events_of, small_store
from trident_store.tools.salvage import Salvaged, Wreck, salvage, session_for


def saved(disk: Disk, like: Session | None = None) -> tuple[Salvaged, Events, ReferenceStore]:
    wreck = Wreck(CrashFileSystem(dict(disk)), PATH)
    out = ReferenceStore(PATH, "create", session_for(wreck, like), filesystem=CrashFileSystem(exists=False))
    result = salvage(wreck, out)
    return result, read_all(out), out


@pytest.fixture(scope="module")
def disk() -> Disk:
    return small_store()


def test_of_a_sound_store_everything(disk: Disk) -> None:
    result, got, out = saved(disk)
    assert got.tobytes() == events_of(disk).tobytes()
    assert result.complete
    whole = ReferenceStore(PATH, "read", filesystem=CrashFileSystem(dict(disk)))
    assert out.session.to_json() == whole.session.to_json()


@pytest.mark.parametrize("kind", ["durable", "man"])
def test_what_only_orders_the_files_is_not_needed(disk: Disk, kind: str) -> None:
    left = {name: data for name, data in disk.items() if not name.endswith(kind)}
    result, got, _ = saved(left)
    assert got.tobytes() == events_of(disk).tobytes()
    assert result.complete


def test_a_lost_table_is_a_gap_with_its_numbers(disk: Disk) -> None:
    events = events_of(disk)
    first, *_ = sorted(name for name in disk if name.endswith(".tab"))
    result, got, _ = saved({name: data for name, data in disk.items() if name != first})
    (gap,) = result.gaps
    lost = np.setdiff1d(events["seq"], got["seq"])
    assert (gap.events, gap.first_seq, gap.last_seq, gap.file) == (len(lost), lost[0], lost[-1], first)
    assert not result.complete
    assert result.expected == len(events)


def test_a_table_of_another_store_gives_nothing(disk: Disk) -> None:
    """Whole and sound, and not this store's: an old copy under the same name."""
    other = small_store("a9 s a9 a60 s a40 s a3")
    mine = sorted(name for name in disk if name.endswith(".tab"))[0]
    theirs = bytearray(sorted((n, d) for n, d in other.items() if n.endswith(".tab"))[0][1])
    theirs[16:32] = bytes(16)
    result, got, _ = saved(dict(disk) | {mine: bytes(theirs)})
    rows = {each.tobytes() for each in events_of(disk)}
    assert all(each.tobytes() in rows for each in got)
    assert not result.complete


def test_frames_behind_damage_in_the_log(disk_after: Callable[[str], Disk]) -> None:
    whole = disk_after("a9 s a7 s a9 s")
    events = events_of(whole)
    name = sorted(n for n in whole if n.endswith(".seg"))[0]
    frames = [at for at in range(64, len(whole[name]), 64) if whole[name][at : at + 5] == b"TFRM\x01"]
    data = bytearray(whole[name])
    data[frames[1] + 64] ^= 1
    result, got, _ = saved(dict(whole) | {name: bytes(data)})
    assert len(got) == len(events) - 2
    (gap,) = [each for each in result.gaps if each.events]
    assert gap.events == 2
    lost = np.setdiff1d(events["seq"], got["seq"])
    assert gap.first_seq <= lost[0] <= lost[-1] <= gap.last_seq


def test_a_cut_log_is_told(disk_after: Callable[[str], Disk]) -> None:
    whole = disk_after("a9 s a7 s")
    name = sorted(n for n in whole if n.endswith(".seg"))[-1]
    result, got, _ = saved(dict(whole) | {name: whole[name][:64]})
    assert not result.complete
    assert result.expected == 16
    assert sum(gap.events or 0 for gap in result.gaps) == 16 - len(got)


def test_a_lost_session_is_asked_for(disk_after: Callable[[str], Disk]) -> None:
    whole = disk_after("a3 s")
    name = "00000000.seg"
    data = bytearray(whole[name])
    data[64 + 64 + 5] ^= 1
    damaged = dict(whole) | {name: bytes(data)}
    with pytest.raises(StoreError, match="session"):
        saved(damaged)
    result, got, _ = saved(damaged, Session())
    assert got.tobytes() == events_of(whole).tobytes()
    assert result.events == 3


def test_nothing_can_be_proven_of_nothing() -> None:
    with pytest.raises(StoreError, match="no file says whose it is"):
        Wreck(CrashFileSystem({"00000000.seg": bytes(4_096)}), PATH)
