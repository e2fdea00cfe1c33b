"""LOBSTER message files: recognised, named, and handed on byte for byte."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trident_core.contracts import FeedOptions
from trident_core.errors import InputError
from trident_core.feeds import open_feed
from trident_core.session import Session
from trident_core.source import Source
from trident_feed.lobster import LobsterFeed

LINES = (
    b"34200.017459617,5,0,1,2238200,-1\n"
    b"34200.18960767,1,11885113,21,2238100,1\n"
    b"36023,7,0,0,-1,-1\n"
    b"57600.1,6,-2,120000,2206400,-1\n"
)
NAME = "AMZN_2012-06-21_34200000_57600000_message_5.csv"


def read(data: bytes, *, chunk: int = 1 << 20) -> list[tuple[int, bytes]]:
    source = Source(io.BytesIO(data), NAME)
    feed = LobsterFeed(source, Session(), FeedOptions(chunk_bytes=chunk))
    return [(part.offset, part.data.tobytes()) for part in feed]


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("data", [LINES, LINES.replace(b"\n", b"\r\n")])
def test_the_bytes_are_handed_on_as_they_are(data: bytes, chunk: int) -> None:
    parts = read(data, chunk=chunk)
    assert b"".join(part for _, part in parts) == data
    assert [offset for offset, _ in parts] == np.cumsum([0, *(len(part) for _, part in parts)])[:-1].tolist()


@pytest.mark.parametrize("chunk", [1, 33, 1 << 20])
def test_a_last_line_that_lacks_only_its_newline_is_given_one(chunk: int) -> None:
    assert b"".join(part for _, part in read(LINES[:-1], chunk=chunk)) == LINES


@pytest.mark.parametrize("chunk", [1, 33, 1 << 20])
@pytest.mark.parametrize("cut", [2, 3, 10, 20])
def test_a_cut_last_line_is_left_cut(cut: int, chunk: int) -> None:
    assert b"".join(part for _, part in read(LINES[:-cut], chunk=chunk)) == LINES[:-cut]


@pytest.mark.parametrize(
    ("head", "score"),
    [
        (LINES, 90),
        (LINES[:-5], 90),
        (LINES[:33], 70),
        (LINES[:32], 70),
        (b"Time,Type,OrderID,Size,Price,Direction\n" + LINES, 80),
        (LINES + b"garbage\n", 80),
        (LINES.replace(b"\n", b"\r\n"), 90),
        (b"", 0),
        (b"\n\n", 0),
        (b"34200.1,8,1,1,1,1\n", 0),
        (b"34200.1,1,1,1,1,0\n", 0),
        (b"34200.1,1,1,1,1\n", 0),
        (b"34200.1,1,1,1,1,1,1\n", 0),
        (b"a\nb\n" + LINES, 0),
        (b"x\n" * 8 + LINES, 0),
        (bytes.fromhex("000c 53 0000 0000 0a2d f4 92 1d 67 4f"), 0),
        (b"1,2,3,4\n", 5),
        (b"1,2,3,4,5\n", 0),
        (b"1,2,3,4", 0),
    ],
)
def test_detection_goes_by_the_bytes(head: bytes, score: int) -> None:
    assert LobsterFeed.detect(head, "no.name") == score


@pytest.mark.parametrize(
    ("name", "symbol"),
    [
        (NAME, "AMZN"),
        (f"some/folder/{NAME}", "AMZN"),
        (f"LOBSTER_SampleFile_AMZN_2012-06-21_5.zip/{NAME}", "AMZN"),
        (f"{NAME}.gz", "AMZN"),
        ("BRK.A_2012-06-21_34200000_57600000_message_10.csv", "BRK.A"),
        ("messages.csv", ""),
        ("standard input", ""),
    ],
)
def test_the_name_tells_the_symbol(name: str, symbol: str) -> None:
    session = Session(price_decimals=2)
    LobsterFeed(Source(io.BytesIO(LINES), name), session, FeedOptions())
    assert session.directory.symbol(1) == symbol
    assert session.price_decimals == 4


@pytest.mark.parametrize(
    ("ticker", "depth", "size"), [("AMZN", 1, 2_371_403), ("AMZN", 5, 6_463_355), ("GOOG", 1, 2_024_312)]
)
def test_samples_are_read_out_of_their_zip(
    shared: Callable[..., Path], ticker: str, depth: int, size: int
) -> None:
    path = shared("data", "lobster_2012-06-21", f"LOBSTER_SampleFile_{ticker}_2012-06-21_{depth}.zip")
    feed, source, session = open_feed(path)
    try:
        assert isinstance(feed, LobsterFeed)
        assert session.directory.symbols() == [ticker]
        assert (session.date, session.venue) == (dt.date(2012, 6, 21), "XNAS")
        assert session.protocol == "lobster-csv"
        assert sum(len(part.data) for part in feed) == size
        assert not source.anomalies
    finally:
        source.close()


def test_an_orderbook_file_is_told_from_a_message_file(tmp_path: Path) -> None:
    path = tmp_path / "AMZN_2012-06-21_34200000_57600000_orderbook_2.csv"
    path.write_text("2239500,100,2231800,100,9999999999,0,-9999999999,0\n" * 3)
    feed, source, _ = open_feed(path)
    with pytest.raises(InputError, match="orderbook file") as caught:
        next(iter(feed))
    assert "message" in caught.value.hint
    source.close()
