"""Dates, venues and versions that file names tell."""

from __future__ import annotations

import datetime as dt

import pytest

from trident_core.filenames import itch_version, session_date, venue


@pytest.mark.parametrize(
    ("name", "date"),
    [
        ("12302019.NASDAQ_ITCH50.gz", dt.date(2019, 12, 30)),
        ("01302020.NASDAQ_ITCH50", dt.date(2020, 1, 30)),
        ("some/folder-20200101/01302020.NASDAQ_ITCH50", dt.date(2020, 1, 30)),
        ("20191230.BX_ITCH_50.gz", dt.date(2019, 12, 30)),
        ("20190530.PSX_ITCH_50.gz", dt.date(2019, 5, 30)),
        ("ex20101224.TEST_ITCH_50.gz", dt.date(2010, 12, 24)),
        ("S071321-v50.txt.gz", dt.date(2021, 7, 13)),
        ("S010203-v41.gz", dt.date(2003, 1, 2)),
        ("AMZN_2012-06-21_34200000_57600000_message_5.csv", dt.date(2012, 6, 21)),
        ("xnas-itch-20201228.mbo.dbn.zst", dt.date(2020, 12, 28)),
        ("feed.2023.08.22.pcap", dt.date(2023, 8, 22)),
        ("13322019.NASDAQ_ITCH50", None),  # no month 13
        ("20190231.BX_ITCH_50", None),  # no 31 February
        ("locate-13-10k.bin", None),
        ("123020191.bin", None),
        ("AddOrder.pcap", None),
        ("standard input", None),
        ("", None),
    ],
)
def test_session_date(name: str, date: dt.date | None) -> None:
    assert session_date(name) == date


@pytest.mark.parametrize(
    ("name", "mic"),
    [
        ("12302019.NASDAQ_ITCH50.gz", "XNAS"),
        ("20191230.BX_ITCH_50.gz", "XBOS"),
        ("20190530.PSX_ITCH_50.gz", "XPSX"),
        ("S071321-v50.txt.gz", "XNAS"),
        ("PSX_2012-06-21_34200000_57600000_message_5.csv", "XNAS"),  # a LOBSTER ticker
        ("xbos-itch-20201228.mbo.dbn.zst", "XBOS"),
        ("whatever.bin", "XNAS"),
    ],
)
def test_venue(name: str, mic: str) -> None:
    assert venue(name) == mic


def test_an_unknown_venue_is_the_callers_choice() -> None:
    assert venue("whatever.bin", default="XXXX") == "XXXX"


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("S010203-v41.gz", (4, 1)),
        ("S010203-v3.gz", (3, 0)),
        ("S071321-v50.txt.gz", (5, 0)),
        ("01302015.NASDAQ_ITCH41.gz", (4, 1)),
        ("20120102.BX_ITCH_40", (4, 0)),
        ("12302019.NASDAQ_ITCH50.gz", (5, 0)),
        ("itch-v4.1.bin", (4, 1)),
        ("ITCH_20190130.bin", None),
        ("ITCH_2.bin", None),
        ("whatever.bin", None),
    ],
)
def test_itch_version(name: str, version: tuple[int, int] | None) -> None:
    assert itch_version(name) == version
