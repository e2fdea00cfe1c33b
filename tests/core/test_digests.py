"""The file of the book's digests, and a store held against it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core.contracts import Kind
from trident_core.digests import HEADER, KEPT, NAME, DigestRecord, read_digests, record_digest, write_digests
from trident_core.dtypes import EVENT, Events
from trident_core.plugins import registry
from trident_core.rebuild import Rebuilt, reread
from trident_core.session import Session


def record(events: int, digest: str = "00" * 32) -> DigestRecord:
    return DigestRecord(events, 2 * events, digest, 3, {"A": events}, "numba")


def test_records_come_back(tmp_path: Path) -> None:
    assert read_digests(tmp_path) == ([], [])
    for events in (5, 9, 12):
        record_digest(tmp_path, record(events))
    assert read_digests(tmp_path) == ([record(5), record(9), record(12)], [])
    record_digest(tmp_path, record(9, "11" * 32))  # what follows it was another life of the store
    assert [each.digest[:2] for each in read_digests(tmp_path)[0]] == ["00", "11"]
    assert [each.name for each in tmp_path.iterdir()] == [NAME]


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    for events in range(1, KEPT + 10):
        record_digest(tmp_path, record(events))
    kept = read_digests(tmp_path)[0]
    assert (len(kept), kept[-1].events) == (KEPT, KEPT + 9)


def test_every_flip_is_reported(tmp_path: Path) -> None:
    write_digests(tmp_path, [record(5), record(9)])
    data = (tmp_path / NAME).read_bytes()
    for at in range(len(data)):
        for mask in (1, 0x20, 0x80):
            changed = bytearray(data)
            changed[at] ^= mask
            (tmp_path / NAME).write_bytes(changed)
            records, findings = read_digests(tmp_path)
            assert findings, (at, mask)
            assert all(each in (record(5), record(9)) for each in records)
    (tmp_path / NAME).write_bytes(data[:-1])
    assert read_digests(tmp_path)[1]


def test_a_file_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    later = HEADER.replace(b"1\n", b"2\n") + b"whatever\n"
    (tmp_path / NAME).write_bytes(later)
    record_digest(tmp_path, record(5))
    assert (tmp_path / NAME).read_bytes() == later
    assert "another version" in read_digests(tmp_path)[1][0].problem


def some_events(count: int) -> Events:
    events = np.zeros(count, EVENT)
    events["seq"] = np.arange(count) * 2 + 2
    events["type"], events["side"], events["qty"], events["price"] = ord("A"), ord("S"), 7, 100
    events["ref"], events["locate"] = np.arange(count) + 1, 1
    return events


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store of 50 events, of which a run recorded the digest after 20 and after 50."""
    path, events = tmp_path / "store", some_events(50)
    with registry().select(Kind.STORE, "reference").make(path, "create", Session()) as store:
        store.append(events)
    for count in (20, 50):
        book = ReferenceBook(Session())
        book.apply(events[:count])
        record_digest(
            path, DigestRecord(count, 2 * count, book.digest().hex(), count, {"A": count}, "reference")
        )
    return path


def reading(folder: Path, records: list[DigestRecord], *, deep: bool = True) -> Rebuilt:
    store = registry().select(Kind.STORE, "reference").make(folder, "read")
    return reread(store.snapshot(), records, book=ReferenceBook(Session()) if deep else None)


def test_the_book_rebuilt_from_the_store_has_the_digest(folder: Path) -> None:
    records = read_digests(folder)[0]
    found = reading(folder, records)
    assert found.findings == []
    assert found.compared == [20, 50]
    assert (found.live_orders, found.digest) == (50, records[-1].digest)
    assert reading(folder, records, deep=False).compared == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"digest": "ab" * 32}, "has digest"),
        ({"last_seq": 41}, "recorded seq 41"),
        ({"counts": {"A": 19, "F": 1}}, "counts of types"),
    ],
)
def test_a_record_that_differs_is_an_error(folder: Path, change: dict[str, object], problem: str) -> None:
    first, second = read_digests(folder)[0]
    findings = reading(folder, [dataclasses.replace(first, **change), second]).findings  # type: ignore[arg-type]
    assert len(findings) == 1
    assert problem in findings[0].problem


def test_events_that_a_run_had_recorded_and_are_gone(folder: Path) -> None:
    (finding,) = reading(folder, [record(60)], deep=False).findings
    assert (finding.first, finding.last) == (50, 59)
    assert "a run recorded 60 events" in finding.problem
