"""DBN files as the feed opens them: metadata, schemas, what is cut, what is not installed."""

from __future__ import annotations

import builtins
import datetime as dt
import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trident_core.contracts import FeedOptions
from trident_core.errors import InputError, PluginError, UsageError
from trident_core.feeds import open_feed
from trident_core.session import Session
from trident_core.source import Source, open_source
from trident_feed.databento import DatabentoFeed, _whole_records

pytest.importorskip("databento_dbn")

MBO = ("data", "databento_dbn", "XNAS.ITCH", "test_data.mbo.dbn.zst")


def read(data: bytes, **options: Any) -> tuple[list[Any], DatabentoFeed, Session]:
    """(chunks, feed, session) of a DBN file in memory."""
    session = Session()
    feed = DatabentoFeed(Source(io.BytesIO(data), "memory"), session, FeedOptions(**options))
    return list(feed), feed, session


@pytest.fixture
def raw(shared: Callable[..., Path]) -> bytes:
    """NASDAQ's sample, decompressed: metadata, and four records of 56 bytes."""
    source = open_source(shared(*MBO))
    data = b""
    while more := source.read(1 << 16):
        data += more
    source.close()
    assert len(data) % 56 == 584 % 56
    return data


def test_the_metadata_make_the_session(shared: Callable[..., Path]) -> None:
    feed, source, session = open_feed(shared(*MBO))
    chunks = list(feed)
    source.close()
    assert (feed.protocol, session.protocol) == ("dbn-mbo", "dbn-mbo")
    assert (session.venue, session.tz, session.price_decimals) == ("XNAS", "America/New_York", 9)
    assert session.date == dt.date(2020, 12, 28)
    assert [(i.locate, i.symbol) for i in session.directory] == [(6155, "NVDA")]
    assert sum(len(chunk.data) for chunk in chunks) == 4 * 56 + 16
    assert not chunks[0].data.flags.writeable


def test_a_date_that_is_told_stays(shared: Callable[..., Path]) -> None:
    feed, source, session = open_feed(shared(*MBO), date=dt.date(2020, 12, 29))
    list(feed)
    source.close()
    assert session.date == dt.date(2020, 12, 29)
    assert len(session.directory) == 0  # the mapping holds for the 28th


def test_other_schemas_are_refused_by_their_name(shared: Callable[..., Path]) -> None:
    refused = set()
    for path in sorted(shared("data", "databento_dbn").rglob("*.dbn*")):
        if ".frag" in path.name or "mbo" in path.name:
            continue
        schema = path.name.split("_")[1] if "futures" in path.name else path.name.split(".")[1]
        feed, source, _ = open_feed(path)
        with pytest.raises(InputError, match=f"holds the schema {schema}, which has no orders"):
            list(feed)
        source.close()
        refused.add(schema)
    assert {"mbp-1", "mbp-10", "trades", "tbbo", "ohlcv-1m", "definition", "status", "bbo-1s"} <= refused


def test_fragments_without_metadata_are_not_recognised(shared: Callable[..., Path]) -> None:
    with pytest.raises(InputError, match="no feed recognises"):
        open_feed(shared("data", "databento_dbn", "dbn_rs", "test_data.definition.v2.dbn.frag"))


def test_any_size_of_chunks_gives_whole_records(raw: bytes) -> None:
    whole, _, _ = read(raw)
    expected = b"".join(chunk.data.tobytes() for chunk in whole)
    start = len(raw) - 4 * 56
    assert expected[:-16] == raw[start:]
    for size in (1, 55, 56, 57, 113):
        chunks, feed, _ = read(raw, chunk_bytes=size)
        assert b"".join(chunk.data.tobytes() for chunk in chunks) == expected
        assert all(len(chunk.data) % 56 == 0 for chunk in chunks[:-1])
        assert [c.offset for c in chunks] == [
            start + sum(len(d.data) for d in chunks[:n]) for n, c in enumerate(chunks)
        ]
        assert not feed.anomalies
    with pytest.raises(UsageError, match="chunk_bytes"):
        read(raw, chunk_bytes=0)


@pytest.mark.parametrize("cut", [1, 30, 55, 56 + 7])
def test_a_record_that_is_cut_is_left_out_and_counted(raw: bytes, cut: int) -> None:
    chunks, feed, _ = read(raw[:-cut])
    kept = (4 * 56 - cut) // 56
    assert sum(len(chunk.data) for chunk in chunks) == 56 * kept + 16
    assert feed.anomalies["torn_tail"].positions == [len(raw) - 56 * (4 - kept)]


def test_records_of_several_lengths_and_one_of_none() -> None:
    records = [bytes([14]) + bytes(55), bytes([4]) + bytes(15), bytes([16]) + bytes(63)] * 3
    data = b"".join(records)
    ends = [sum(map(len, records[:n])) for n in range(len(records) + 1)]
    for size in range(len(data) + 1):
        assert _whole_records(data[:size]) == max(end for end in ends if end <= size)
    assert _whole_records(records[0] + bytes(9)) == 56 + 9


@pytest.mark.parametrize("size", [4, 8, 40, 300])
def test_a_header_that_is_cut_is_one_error(raw: bytes, size: int) -> None:
    with pytest.raises(InputError, match="ends inside its DBN header"):
        read(raw[:size])


def test_headers_that_cannot_be_read(raw: bytes) -> None:
    with pytest.raises(InputError, match=r"DBN version 9\) cannot be read"):
        read(raw[:3] + b"\x09" + raw[4:])
    with pytest.raises(InputError, match="no DBN header"):
        read(raw[:4] + struct.pack("<I", 1 << 31) + raw[8:])
    damaged = bytearray(raw)
    damaged[24:26] = b"\xee\xee"  # the schema
    with pytest.raises(InputError):
        read(bytes(damaged))


def test_without_the_package_it_says_what_to_install(
    shared: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **more: Any) -> Any:
        if name == "databento_dbn":
            raise ImportError("No module named 'databento_dbn'")
        return real(name, *args, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    feed, source, _ = open_feed(shared(*MBO))  # recognised all the same
    with pytest.raises(PluginError, match=r"is a DBN file.*trident-core\[databento\]"):
        list(feed)
    source.close()


def test_what_is_recognised() -> None:
    assert DatabentoFeed.detect(b"DBN\x03" + bytes(8), "") > 90
    for head in (b"", b"DBN", b"DBN\x00", b"DBZ\x01", b"DBNA", bytes(8)):
        assert DatabentoFeed.detect(head, "day.dbn") == 0
