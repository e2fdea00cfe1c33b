"""The bytes: a golden store, written once and kept; the version policy; the fields as documented."""

from __future__ import annotations

import datetime as dt
import json
import re
import struct
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest

from trident_core.dtypes import EVENT
from trident_core.errors import StoreError
from trident_core.session import Directory, Instrument, Session
from trident_store.crashcheck import make_events, read_all
from trident_store.crashmodel import CrashFileSystem
from trident_store.reference import ReferenceStore

GOLDEN = Path(__file__).parent / "golden" / "1.0"
ROOT = Path(__file__).parents[2]
STORE_ID = bytes(range(100, 116))


def write_golden(folder: Path) -> None:
    """Two segments, two epochs, directory growth, a sync in between. Never change this: add another."""
    session = Session(
        date=dt.date(2019, 12, 30), directory=Directory([Instrument(1, "AAPL", {"round_lot": 100})])
    )
    options: dict[str, Any] = {"segment_bytes": 4_096, "sector_bytes": 512, "frame_events": 8}
    with ReferenceStore(folder, "create", session, store_id=STORE_ID, **options) as store:
        store.append(make_events(0, 5))
        store.sync()
        session.directory.put(Instrument(2, "BRK.A"))
        store.append(make_events(5, 20))
    with ReferenceStore(folder, "append", **options) as store:
        store.append(make_events(25, 30))


def files_of(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name != "lock"}


def test_the_golden_store_is_read(tmp_path: Path, same: Any) -> None:
    reader = ReferenceStore(GOLDEN, "read")
    assert same(read_all(reader), make_events(0, 55))
    assert reader.session.directory.symbols() == ["AAPL", "BRK.A"]
    assert reader.session.date == dt.date(2019, 12, 30)
    assert (reader.verify().findings, reader.stats()["segments"], reader.stats()["epoch"]) == ([], 2, 2)
    assert set(files_of(GOLDEN)) == {"00000000.seg", "00000001.seg", "durable"}


def test_the_golden_store_is_written(tmp_path: Path) -> None:
    write_golden(tmp_path / "s")
    assert files_of(tmp_path / "s") == files_of(GOLDEN)


CODES = {"u16": "<H", "u32": "<I", "u64": "<Q"}


def fields(table: str, data: bytes) -> dict[str, Any]:
    """A 64-byte header as the document's table of that name says."""
    document = (ROOT / "docs" / "store-format.md").read_text()
    tables = dict(re.findall(r"<!-- (\w+) -->\n\n\|.*?\|\n\|[-| ]+\|\n((?:\|.*\|\n)+)", document))
    result: dict[str, Any] = {}
    end = 0
    for row in tables[table].splitlines():
        offset, kind, name = [cell.strip(" `") for cell in row.split("|")[1:4]]
        assert int(offset) == end, f"{table}.{name} leaves a gap"
        code = CODES.get(kind, "")
        size = struct.calcsize(code) if code else int(kind.removesuffix(" bytes"))
        raw = data[end : end + size]
        result[name] = struct.unpack(code, raw)[0] if code else raw
        end += size
    assert end == 64
    return result


def test_every_field_stands_where_the_document_says() -> None:
    """Read the golden store with nothing but docs/store-format.md and struct."""
    header = fields("position", (GOLDEN / "00000001.seg").read_bytes()[:64])
    assert header["magic"] == b"TRIDSEGM"
    assert (header["major"], header["minor"], header["segment"], header["epoch"]) == (1, 0, 1, 2)
    assert header["store id"] == STORE_ID
    assert header["offset"] == (GOLDEN / "00000000.seg").stat().st_size

    content = (GOLDEN / "00000000.seg").read_bytes()
    assert fields("position", content[:64])["crc"] == google_crc32c.value(content[:60])
    at, events, kinds, instruments = 64, [], [], []
    while at < len(content):
        frame = fields("frame", content[at : at + 64])
        payload = content[at + 64 : at + 64 + frame["payload bytes"]]
        assert frame["magic"] == b"TFRM"
        assert frame["header bytes"] == 64
        assert frame["payload crc"] == google_crc32c.value(payload)
        assert frame["crc"] == google_crc32c.value(STORE_ID + content[at : at + 60])
        assert (frame["segment"], frame["offset"], frame["ordinal"]) == (0, at, len(events))
        kinds.append(frame["kind"])
        if frame["kind"] == 1:
            rows = np.frombuffer(payload, EVENT)
            assert (frame["count"], frame["first seq"], frame["last seq"]) == (
                len(rows), rows["seq"][0], rows["seq"][-1],
            )  # fmt: skip
            events.extend(rows)
        elif frame["kind"] == 2:
            assert json.loads(payload)["venue"] == "XNAS"
        elif frame["kind"] == 3:
            instruments += json.loads(payload)
        else:
            assert not any(payload)
        at += 64 + len(payload)
    assert kinds[:2] == [2, 4]
    assert set(kinds) == {1, 2, 3, 4}
    assert [each[:2] for each in instruments] == [[1, "AAPL"], [2, "BRK.A"]]
    assert header["ordinal"] == len(events)

    marks = (GOLDEN / "durable").read_bytes()
    assert len(marks) == 8_192
    newest = max(
        (fields("position", marks[at : at + 64]) for at in (0, 4096)),
        key=lambda m: (m["segment"], m["offset"]),
    )
    assert newest["magic"] == b"TRIDMARK"
    assert (newest["segment"], newest["ordinal"], newest["last seq"]) == (1, 55, 109)
    assert newest["offset"] == (GOLDEN / "00000001.seg").stat().st_size


def with_version(record: bytes, major: int, minor: int) -> bytes:
    body = record[:8] + struct.pack("<HH", major, minor) + record[12:60]
    return body + struct.pack("<I", google_crc32c.value(body))


@pytest.mark.parametrize(("major", "minor", "age"), [(1, 4, "newer"), (2, 0, "newer"), (0, 9, "older")])
@pytest.mark.parametrize("name", ["durable", "00000000.seg"])
def test_another_version_is_refused_before_anything_is_written(
    disk_after: Any, opener: Any, name: str, major: int, minor: int, age: str
) -> None:
    disk = disk_after("a3 s")
    del disk["lock"]
    content = disk[name]
    disk[name] = with_version(content[:64], major, minor) + content[64:]
    if name == "durable":
        disk[name] = disk[name][:4096] + with_version(content[4096:4160], major, minor) + content[4160:]
    for mode in ("read", "append"):
        files = CrashFileSystem(disk)
        changed: list[str] = []
        files.before = lambda call, changed=changed: changed.append(call)
        with pytest.raises(StoreError, match=f"format is {major}.{minor}, {age}"):
            opener(mode, None, files)
        assert not {"write", "truncate", "remove", "sync"} & set(changed)
        if name == "durable":
            assert files.visible() == disk


def test_events_take_64_bytes_and_little_more(tmp_path: Path) -> None:
    with ReferenceStore(tmp_path / "s", "create", Session()) as store:
        store.append(make_events(0, 100_000))
        store.sync()
        overhead = store.stats()["bytes"] - 64 * 100_000
    assert 0 < overhead < 64 * 26 + 2 * 4_096
