"""The reference parser on bytes that others recorded: counts, identities and known values."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from trident_core import Instrument, Session
from trident_core.decode import events_of
from trident_core.dtypes import EVENT
from trident_parser.itch50 import BY_LETTER, LENGTHS, TABLE_DTYPES
from trident_parser.reference import ReferenceParser

pytestmark = pytest.mark.shared
Shared = Callable[..., Path]


def counts_of(parser: ReferenceParser) -> dict[str, int]:
    return {chr(letter): int(n) for letter, n in enumerate(parser.counts) if n}


def assert_identities(frames: bytes, parser: ReferenceParser) -> None:
    """Events and rows of strictly framed bytes survive encoding; rows give back the very bytes."""
    events = events_of(frames, parser)
    again = events_of(parser.encode_events(events), ReferenceParser(parser.session))
    again["seq"] = events["seq"]
    assert np.array_equal(again, events)

    tables = ReferenceParser(Session()).parse_tables(np.frombuffer(frames, np.uint8))
    encoded = {letter: parser.encode_rows(letter, rows).tobytes() for letter, rows in tables.items()}
    expected: dict[str, bytes] = dict.fromkeys(encoded, b"")
    at = 0
    while at + 2 <= len(frames):
        length = int.from_bytes(frames[at : at + 2], "big")
        frame = frames[at : at + 2 + length]
        if len(frame) == 2 + length:
            expected[chr(frame[2])] += frame
        at += 2 + length
    assert encoded == expected


def test_runk(shared: Shared) -> None:
    frames = shared("data", "itch50_runk", "locate-13-10k.bin").read_bytes()
    parser = ReferenceParser(Session())
    events = events_of(frames, parser)
    assert counts_of(parser) == {
        "A": 4758, "F": 2, "D": 4083, "E": 849, "P": 240, "L": 52, "X": 6, "U": 7, "R": 1, "H": 1, "Y": 1,
    }  # fmt: skip
    assert len(events) == 10_000
    assert np.array_equal(events["seq"], np.arange(1, 10_001))
    assert (events["locate"] == 13).all()
    assert (np.diff(events["ts"].astype(np.int64)) >= 0).all()
    assert int(events["ts"][0]) == (3 * 3600 + 7 * 60 + 14) * 10**9 + 909_934_345
    assert int(events["ts"][-1]) == (7 * 3600 + 59 * 60 + 30) * 10**9 + 516_505_496
    trades = events[events["type"] == ord("P")]
    assert (trades["ref"] == 0).all()
    assert (trades["side"] == ord("B")).all()
    assert [(i.locate, i.symbol) for i in parser.session.directory] == [(13, "AAPL")]
    assert parser.position == len(frames)
    assert not parser.anomalies


def test_runk_survives_encoding(shared: Shared) -> None:
    frames = shared("data", "itch50_runk", "locate-13-10k.bin").read_bytes()
    assert_identities(frames, ReferenceParser(Session()))


def test_runk_events_encode_to_the_same_bytes_but_for_what_event_lacks(shared: Shared) -> None:
    """Order messages lose only the tracking number, which is 0 in this file for nearly all."""
    frames = shared("data", "itch50_runk", "locate-13-10k.bin").read_bytes()
    parser = ReferenceParser(Session())
    events = events_of(frames, parser)
    tables = ReferenceParser(Session()).parse_tables(np.frombuffer(frames, np.uint8))
    for letter in "AFDEPXU":
        rows = tables[letter].copy()
        rows["tracking_number"] = 0
        of_type = events[events["type"] == ord(letter)]
        assert np.array_equal(parser.encode_events(of_type), parser.encode_rows(letter, rows)), letter


def test_ritch_in_lenient_mode(shared: Shared) -> None:
    frames = gzip.decompress(shared("data", "ritch", "ex20101224.TEST_ITCH_50.gz").read_bytes())
    parser = ReferenceParser(Session(), lenient=True)
    events = events_of(frames, parser)
    assert len(events) == 12_012
    assert counts_of(parser) == {
        "S": 6, "R": 3, "H": 3, "A": 4997, "F": 3, "E": 198, "D": 1745, "P": 5000, "U": 12, "X": 45,
    }  # fmt: skip
    assert events["aux"][events["type"] == ord("S"), 0].tobytes() == b"OSQMEC"
    assert parser.session.directory.symbols() == ["ALC", "BOB", "CHAR"]
    assert not parser.anomalies

    framed = parser.encode_events(events)  # now with the right prefixes
    again = events_of(framed, ReferenceParser(Session()))
    assert np.array_equal(again, events)


def test_ritch_in_strict_mode_ends_at_once(shared: Shared) -> None:
    frames = gzip.decompress(shared("data", "ritch", "ex20101224.TEST_ITCH_50.gz").read_bytes())
    parser = ReferenceParser(Session())
    assert len(events_of(frames, parser)) == 0
    assert parser.anomalies.to_json() == {"bytes_after_end": {"count": len(frames) - 2, "first_at": [2]}}


def test_lenient_reads_a_well_framed_file_alike(shared: Shared) -> None:
    frames = shared("data", "itch50_runk", "locate-13-10k.bin").read_bytes()
    strict = events_of(frames, ReferenceParser(Session()))
    assert np.array_equal(events_of(frames, ReferenceParser(Session(), lenient=True)), strict)


def test_torn_file(shared: Shared) -> None:
    frames = shared("data", "itch50_heads", "huckzou_partialData.bin").read_bytes()
    parser = ReferenceParser(Session())
    events = events_of(frames, parser)
    assert events["type"].tobytes() == b"SRRRHYRRHYRHYRHY"
    assert counts_of(parser) == {"S": 1, "R": 7, "H": 4, "Y": 4}
    assert parser.anomalies.to_json() == {"torn_tail": {"count": 1, "first_at": [497]}}
    assert parser.position == 497
    assert parser.session.directory.symbols()[:3] == ["A", "AA", "AA-"]
    assert_identities(frames, ReferenceParser(Session()))


def test_any_cut_of_the_torn_file(shared: Shared) -> None:
    frames = shared("data", "itch50_heads", "huckzou_partialData.bin").read_bytes()
    whole = events_of(frames, ReferenceParser(Session()))
    for size in range(len(frames)):
        events = events_of(frames[:size], ReferenceParser(Session()))
        assert np.array_equal(events, whole[: len(events)])


def messages_of_pcap(path: Path) -> bytes:
    """The MoldUDP64 message blocks (length and message) of an Ethernet, IPv4, UDP capture.

    A message block is framed as a day file is, so that they can simply be joined.
    """
    data = path.read_bytes()
    order = "little" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else "big"
    blocks = b""
    at = 24
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], order)  # type: ignore[arg-type]
        packet = data[at + 16 : at + 16 + size]
        ip = 14 + 4 * (packet[12:14] == b"\x81\x00")
        blocks += packet[ip + 20 + 8 + 20 :]
        at += 16 + size
    return blocks


@pytest.mark.parametrize(
    ("folder", "counts"),
    [
        (
            "Nasdaq.Equities.TotalView.Itch.v5.0",
            {"A": 37, "D": 2, "F": 2, "L": 1, "I": 1, "E": 1, "U": 1, "H": 1},
        ),
        (
            "Nasdaq.Equities.TotalView.Itch.v5.0.20230822",
            {**dict.fromkeys("AFQJLIPXDECUYH", 5), "S": 1},
        ),
    ],
)
def test_pcaps(shared: Shared, folder: str, counts: dict[str, int]) -> None:
    paths = sorted(shared("data", "pcap", folder).glob("*.pcap"))
    frames = b"".join(map(messages_of_pcap, paths))
    parser = ReferenceParser(Session())
    events = events_of(frames, parser)
    assert counts_of(parser) == counts
    assert len(events) == sum(counts.values())
    assert not parser.anomalies
    assert_identities(frames, ReferenceParser(Session()))


def crosses(path: Path) -> NDArray[Any]:
    """Every Q of a day as EVENTs, from a table that another program made."""
    with path.open(newline="") as file:
        lines = list(csv.reader(file))
    events = np.zeros(len(lines), EVENT)
    for event, (letter, locate, _tracking, time, shares, _stock, price, match, cross_type) in zip(
        events, lines, strict=True
    ):
        seconds, nanos = time.split(".")
        whole, part = price.split(".")
        event["type"], event["locate"] = ord(letter), int(locate)
        event["ts"] = int(seconds) * 10**9 + int(nanos.ljust(9, "0"))
        event["price"] = int(whole) * 10_000 + int(part)
        event["qty"], event["ref2"] = int(shares), int(match)
        event["aux"][0] = ord(cross_type)
    events["seq"] = np.arange(1, len(events) + 1)
    return events


def test_every_cross_of_a_day(shared: Shared) -> None:
    path = shared("data", "cross_2019-01-30_findli", "01302019-Q.csv")
    events = crosses(path)
    session = Session()
    with path.open(newline="") as file:
        for line in csv.reader(file):
            session.directory.put(Instrument(int(line[1]), line[5]))
    frames = ReferenceParser(session).encode_events(events)
    assert len(frames) == 42 * len(events) == 42 * 17_430

    parser = ReferenceParser(Session())
    assert np.array_equal(events_of(frames, parser), events)
    assert parser.session.directory == session.directory
    assert int((events["qty"] == 0).sum()) == 11_996
    by_type = {chr(t): int((events["aux"][:, 0] == t).sum()) for t in b"OCH"}
    assert by_type == {"O": 8713, "C": 8713, "H": 4}

    (table,) = ReferenceParser(Session()).parse_tables(frames).values()
    assert np.array_equal(table["cross_shares"], events["qty"])
    assert np.array_equal(table["match_number"], events["ref2"])


def test_table_agrees_with_the_field_lists_of_two_independent_sources(shared: Shared) -> None:
    import json

    spec = json.loads(shared("data", "spec", "itch50_fields.json").read_text())
    assert set(spec) == set(BY_LETTER)
    for letter, theirs in spec.items():
        ours = BY_LETTER[letter]
        assert (ours.name, ours.length) == (theirs["name"], theirs["length"])
        assert int(LENGTHS[ord(letter)]) == theirs["length"]
        names = [{"locate_code": "stock_locate"}.get(f["name"], f["name"]) for f in theirs["fields"]]
        assert [f.name for f in ours.fields] == names
        assert [(f.offset, f.size) for f in ours.fields] == [
            (f["offset"], f["size"]) for f in theirs["fields"]
        ]
        assert list(TABLE_DTYPES[letter].names or ()) == ["seq", *names[1:]]
