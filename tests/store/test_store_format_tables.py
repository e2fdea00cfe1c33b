"""The bytes of format 1.1: a golden store, written once and kept; tables and manifest as documented."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import re
import struct
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest

from trident_conformance.golden import FOLDER
from trident_core.dtypes import EVENT
from trident_core.session import Directory, Instrument, Session
from trident_store.crashcheck import make_events, read_all
from trident_store.lsm.engine import LsmStore
from trident_store.lsm.layout import Shape, bloom_places
from trident_store.reference import ReferenceStore

GOLDEN = Path(__file__).parent / "golden" / "1.1"
DOCUMENT = Path(__file__).parents[2] / "docs" / "store-format.md"
STORE_ID = bytes(range(100, 116))


def write_golden(folder: Path) -> None:
    """Tables of two levels, a manifest of several records, two epochs, a segment behind, a new name of a
    symbol. Never change this: add another."""
    session = Session(
        date=dt.date(2019, 12, 30), directory=Directory([Instrument(1, "AAPL", {"round_lot": 100})])
    )
    options: dict[str, Any] = {
        "segment_bytes": 4_096, "sector_bytes": 512, "frame_events": 8, "background": False, "fanout": 2,
        "shape": Shape(block_events=16, window_events=32, page_refs=8), "mark": "each", "spare_segments": 0,
    }  # fmt: skip
    with LsmStore(folder, "create", session, store_id=STORE_ID, **options) as store:
        store.append(make_events(0, 60))
        store.sync()
        session.directory.put(Instrument(2, "BRK.A"))
        store.append(make_events(60, 70))
    with LsmStore(folder, "append", **options) as store:
        store.session.directory.put(Instrument(1, "AAPL.NEW"))
        store.append(make_events(130, 220))


def files_of(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in folder.iterdir() if each.name != "lock"}


@pytest.mark.parametrize("engine", [LsmStore, ReferenceStore])
def test_the_golden_store_is_read(engine: Any, same: Any) -> None:
    reader = engine(GOLDEN, "read")
    assert same(read_all(reader), make_events(0, 350))
    assert reader.session.directory.symbols() == ["AAPL.NEW", "BRK.A"]
    assert reader.session.directory.get(1).details == {}
    assert reader.session.date == dt.date(2019, 12, 30)
    stats = reader.stats()
    assert (reader.verify().findings, stats["tables"], stats["segments"], stats["epoch"]) == ([], 3, 1, 2)
    expected = make_events(0, 350)
    for ref in (3, 10, 703, 2_446):
        named = (expected["ref"] == ref) | ((expected["ref2"] == ref) & (expected["type"] == ord("U")))
        assert same(reader.snapshot().get(ref), expected[named])


def test_the_golden_store_is_written(tmp_path: Path) -> None:
    write_golden(tmp_path / "s")
    assert files_of(tmp_path / "s") == files_of(GOLDEN)


CODES = {"u16": "<H", "u32": "<I", "u64": "<Q", "i64": "<q"}


def fields(table: str, data: bytes) -> dict[str, Any]:
    """A record as the document's table of that name says; it must fill `data`."""
    tables = dict(re.findall(r"<!-- (\w+) -->\n\n\|.*?\|\n\|[-| ]+\|\n((?:\|.*\|\n)+)", DOCUMENT.read_text()))
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
    assert end == len(data)
    return result


def crc(data: bytes) -> int:
    return int(google_crc32c.value(data))


def newest_record() -> tuple[dict[str, Any], bytes, str]:
    """The last frame of the manifest, its payload, and the manifest's name."""
    (name,) = [name for name in files_of(GOLDEN) if name.endswith(".man")]
    content = (GOLDEN / name).read_bytes()
    header = fields("position", content[:64])
    assert (header["magic"], header["minor"], header["segment"]) == (b"TRIDMANI", 1, int(name[:8]))
    at, found = 64, None
    while at < len(content):
        frame = fields("frame", content[at : at + 64])
        payload = content[at + 64 : at + 64 + frame["payload bytes"]]
        assert (frame["kind"], frame["segment"], frame["offset"]) == (5, int(name[:8]), at)
        assert frame["crc"] == crc(STORE_ID + content[at : at + 60])
        assert frame["payload crc"] == crc(payload)
        at += 64 + len(payload)
        assert at % 512 == 0
        found = frame, payload, name
    assert found is not None
    return found


def test_the_manifest_stands_as_the_document_says() -> None:
    frame, payload, _ = newest_record()
    log = fields("position", payload[:64])
    (segment,) = [name for name in files_of(GOLDEN) if name.endswith(".seg")]
    header = fields("position", (GOLDEN / segment).read_bytes()[:64])
    assert log["magic"] == b"TRIDLOGS"
    for name in ("segment", "ordinal", "offset", "last seq", "epoch", "store id"):
        assert log[name] == header[name]
    ordinal = 0
    for i in range(frame["count"]):
        entry = fields("entry", payload[64 + 64 * i : 128 + 64 * i])
        content = (GOLDEN / f"{entry['table']:08d}.tab").read_bytes()
        assert (entry["first ordinal"], entry["bytes"]) == (ordinal, len(content))
        assert entry["footer crc"] == struct.unpack("<I", content[-4:])[0] == crc(content[-512:-4])
        ordinal += entry["count"]
    assert ordinal == frame["ordinal"] == log["ordinal"]
    assert not any(payload[64 + 64 * frame["count"] :])


def sections_of(footer: dict[str, Any], content: bytes) -> list[bytes]:
    rows = [struct.unpack_from("<QQII", footer["sections"], 24 * i) for i in range(10)]
    end = 64
    for i, (offset, size, check, zero) in enumerate(rows):
        assert (offset, size % 64, zero) == (end, 0, 0)
        assert check == (0 if i in (0, 3, 5, 6) else crc(content[offset : offset + size]))
        end += size
    assert end == len(content) - 512
    return [content[offset : offset + size] for offset, size, _, _ in rows]


@pytest.mark.parametrize("index", [0, -1])
def test_a_table_stands_as_the_document_says(index: int) -> None:
    """Read with nothing but docs/store-format.md and struct: events, order, references, filter, bounds."""
    name = sorted(name for name in files_of(GOLDEN) if name.endswith(".tab"))[index]
    content = (GOLDEN / name).read_bytes()
    footer = fields("footer", content[-512:])
    header = fields("position", content[:64])
    assert (header["magic"], header["segment"]) == (b"TRIDTABL", footer["table"])
    assert (header["offset"], header["ordinal"]) == (footer["count"], footer["first ordinal"])
    assert (footer["magic"], footer["store id"], footer["minor"]) == (b"TRIDTABF", STORE_ID, 1)
    blocks, info, runs, index_, windows, refs, positions, pages, bloom, session = sections_of(footer, content)
    count, per_block = footer["count"], footer["block events"]

    events = np.zeros(count, EVENT)
    for b, start in enumerate(range(0, count, per_block)):
        n = min(per_block, count - start)
        block = fields("block", info[128 * b : 128 * b + 128])
        for c, column in enumerate(EVENT.names or ()):
            offset, width = EVENT.fields[column][1], EVENT[column].itemsize  # type: ignore[index]
            data = blocks[64 * start :][n * offset : n * (offset + width)]
            assert struct.unpack_from("<I", block["crc"], 4 * c)[0] == crc(data)
            kind = EVENT[column]
            values = np.frombuffer(data, kind.base).reshape(n, *kind.shape)
            events[column][start : start + n] = values
            if column in ("seq", "ts", "price", "locate"):
                assert (block[f"min {column}"], block[f"max {column}"]) == (values.min(), values.max())

    order = np.frombuffer(index_, "<u4")[:count]
    first = footer["first ordinal"]
    assert events[order].tobytes() == make_events(first, count).tobytes()
    assert [tuple(each) for each in np.frombuffer(runs, "<u4").reshape(-1, 2)[: footer["locates"]]] == [
        (locate, start) for locate, start in zip(*np.unique(events["locate"], return_index=True), strict=True)
    ]
    for w, start in enumerate(range(0, count, footer["window events"])):
        window = fields("window", windows[32 * w : 32 * w + 32])
        part = make_events(first + start, min(footer["window events"], count - start))
        assert window["first seq"] == part["seq"][0]
        assert (window["min ts"], window["max ts"]) == (part["ts"].min(), part["ts"].max())
        stop = start + footer["window events"]
        assert window["crc"] == crc(index_[4 * start : 4 * stop if stop < count else None])

    named = [(int(e["ref"]), i) for i, e in enumerate(events[order])]
    named += [(int(e["ref2"]), i) for i, e in enumerate(events[order]) if e["type"] == ord("U")]
    expected = sorted(each for each in named if each[0])
    got_refs = np.frombuffer(refs, "<u8")[: footer["refs"]]
    assert got_refs.tolist() == [ref for ref, _ in expected]
    assert np.frombuffer(positions, "<u4")[: footer["refs"]].tolist() == [int(order[i]) for _, i in expected]
    assert (footer["min ref"], footer["max ref"]) == (got_refs[0], got_refs[-1])
    per_page = footer["page refs"]
    for p, start in enumerate(range(0, footer["refs"], per_page)):
        end = start + per_page if start + per_page < footer["refs"] else None
        checks = crc(refs[8 * start : end and 8 * end]), crc(positions[4 * start : end and 4 * end])
        assert struct.unpack_from("<QII", pages, 16 * p) == (got_refs[start], *checks)
    words = np.frombuffer(bloom, "<u8").reshape(-1, 8)
    assert len(words) == max(-(-footer["refs"] * 8 // 512), 1)
    for ref in got_refs.tolist():
        assert all(word & mask == mask for word, mask in zip(*filter_bits(ref, words), strict=True))
    directory = {locate: symbol for locate, symbol, _ in json.loads(session)["directory"]}
    assert directory[1] == ("AAPL" if footer["epoch"] == 1 else "AAPL.NEW")


def filter_bits(ref: int, words: Any) -> tuple[list[int], list[int]]:
    """The words of a reference's block and its bits, by the document's arithmetic in Python's integers."""
    mask64, mask32 = (1 << 64) - 1, (1 << 32) - 1
    h = ref ^ ref >> 33
    h = h * 0xFF51AFD7ED558CCD & mask64
    h ^= h >> 33
    h = h * 0xC4CEB9FE1A85EC53 & mask64
    h ^= h >> 33
    block = (h >> 32) * len(words) >> 32
    salts = re.findall(r"\b[0-9a-f]{8}\b", DOCUMENT.read_text().partition("salts are those")[2])[:8]
    bits = [1 << (((h & mask32) * int(salt, 16) & mask32) >> 26) for salt in salts]
    at, masks = bloom_places(np.array([ref], np.uint64), len(words))
    assert (int(at[0]), masks[0].tolist()) == (block, bits)
    return words[block].tolist(), bits


def test_the_job_stands_as_the_document_says() -> None:
    """Of the golden store that a compaction was left in."""
    (path,) = (FOLDER / "1.3-job").glob("*.job")
    content, number = path.read_bytes(), int(path.name[:8])
    header = fields("position", content[:64])
    assert (header["magic"], header["segment"], header["offset"]) == (b"TRIDJOBS", number, 0)
    at, frames = 64, []
    while at < len(content):
        frame = fields("frame", content[at : at + 64])
        payload = content[at + 64 : at + 64 + frame["payload bytes"]]
        assert (frame["kind"], frame["segment"], frame["offset"]) == (6, number, at)
        assert (frame["crc"], frame["payload crc"]) == (crc(STORE_ID + content[at : at + 60]), crc(payload))
        assert frame["last seq"] == header["last seq"]
        frames.append((frame, payload))
        at += 64 + len(payload)
    (plan, payload), *records = frames
    assert fields("plan", payload[:64])["block events"] == 8
    inputs = [fields("entry", payload[64 + 64 * i : 128 + 64 * i]) for i in range(plan["count"])]
    assert [each["table"] for each in inputs] == [1, 2]
    assert inputs[0]["first ordinal"] == header["ordinal"]
    table = path.with_suffix(".tab").read_bytes()
    done = 0
    for frame, payload in records:
        assert frame["ordinal"] == done
        for i in range(frame["count"]):
            crcs = struct.unpack("<11I", fields("block", payload[128 * i : 128 * i + 128])["crc"])
            block = table[64 + 512 * (done + i) :][:512]
            ends = [0, 64, 128, 192, 256, 320, 384, 416, 424, 432, 448, 512]  # of eight events
            assert [crc(block[a:b]) for a, b in itertools.pairwise(ends)] == list(crcs)
        done += frame["count"]
    assert done == 2
