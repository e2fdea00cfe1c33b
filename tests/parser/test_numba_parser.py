"""The numba parser equals the reference: events, statuses, counts, anomalies, directory, typed rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core.contracts import Status
from trident_core.dtypes import EVENT
from trident_core.session import Directory, Instrument, Session
from trident_parser import kernels
from trident_parser.itch50 import LENGTHS, STOCK_OFFSETS
from trident_parser.numba_parser import NumbaParser
from trident_parser.reference import ReferenceParser

KNOWN_TYPES = [letter for letter in range(256) if LENGTHS[letter]]
STOCKS = [
    b"AAPL    ",
    b"MSFT    ",
    b"ZVZZT\0\0\0",
    b"        ",
    b"\0" * 8,
    b"AAPL\0\0\0\0",
    bytes(range(248, 256)),
]
SYMBOLS = ["AAPL", "MSFT", "AAPL ", "LONGER THAN EIGHT", "", "ÿ", "\u20ac"]


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """One message with its prefix: right, of an unknown type, of a wrong length, or with a zero prefix."""
    kind = draw(st.sampled_from(["right"] * 12 + ["unknown", "longer", "shorter", "zero prefix", "end"]))
    if kind == "end":
        return b"\0\0"
    letter = draw(st.integers(0, 255) if kind == "unknown" else st.sampled_from(KNOWN_TYPES))
    length = int(LENGTHS[letter]) or draw(st.integers(1, 60))
    if kind == "longer":
        length += draw(st.integers(1, 9))
    if kind == "shorter":
        length = draw(st.integers(1, length))
    body = bytearray(draw(st.binary(min_size=length, max_size=length)))
    body[0] = letter
    if length >= 3 and draw(st.booleans()):
        body[1:3] = draw(st.integers(0, 3)).to_bytes(2, "big")
    at = int(STOCK_OFFSETS[letter])
    if at and length >= at + 8:
        body[at : at + 8] = draw(st.sampled_from(STOCKS))
    return (0 if kind == "zero prefix" else length).to_bytes(2, "big") + bytes(body)


def directory(names: list[tuple[int, str]]) -> Directory:
    return Directory(Instrument(locate, symbol) for locate, symbol in names)


def run(
    make: Callable[..., Any], data: bytes, sizes: list[int], lenient: bool, known: Any
) -> tuple[Any, ...]:
    """Parse with outputs of the given sizes in turn; all that can be observed."""
    parser = make(Session(directory=directory(known)), lenient=lenient)
    parser.next_seq, parser.position = 2**64 - 40, 1000
    frames, start, found, results = np.frombuffer(data, np.uint8), 0, [], []
    for turn in range(10_000):
        out = np.full(sizes[turn % len(sizes)], 0xAB, np.uint8).repeat(64).view(EVENT)
        result = parser.parse_into(frames[start:], out)
        assert out[result.count :].tobytes() == b"\xab" * (64 * (len(out) - result.count))
        found.append(out[: result.count].tobytes())
        results.append(tuple(result))
        start += result.consumed
        if result.status is not Status.OUT_FULL:
            break
    return (
        b"".join(found), results, parser.counts.tolist(), parser.anomalies.to_json(), parser.next_seq,
        parser.position, parser.session.to_json(),
    )  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(
    st.lists(messages(), max_size=40),
    st.integers(0, 40),
    st.lists(st.integers(1, 50), min_size=1, max_size=3),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from(SYMBOLS)), max_size=4),
)
def test_any_stream_is_parsed_as_the_reference_does(
    parts: list[bytes], cut: int, sizes: list[int], lenient: bool, known: list[tuple[int, str]]
) -> None:
    data = b"".join(parts)
    data = data[: len(data) - cut] if cut < len(data) else data
    assert run(NumbaParser, data, sizes, lenient, known) == run(ReferenceParser, data, sizes, lenient, known)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.booleans())
def test_random_bytes_are_parsed_as_the_reference_does(data: bytes, lenient: bool) -> None:
    assert run(NumbaParser, data, [7], lenient, []) == run(ReferenceParser, data, [7], lenient, [])


@settings(max_examples=100, deadline=None)
@given(st.lists(messages(), max_size=30), st.booleans())
def test_typed_rows_equal_the_reference(parts: list[bytes], lenient: bool) -> None:
    frames = np.frombuffer(b"".join(parts), np.uint8)
    ours, theirs = (make(Session(), lenient=lenient) for make in (NumbaParser, ReferenceParser))
    mine, law = ours.parse_tables(frames), theirs.parse_tables(frames)
    assert mine.keys() == law.keys()
    assert all(mine[letter].tobytes() == law[letter].tobytes() for letter in law)
    assert all(mine[letter].dtype == law[letter].dtype for letter in law)
    assert (ours.next_seq, ours.position) == (theirs.next_seq, theirs.position)
    assert ours.anomalies.to_json() == theirs.anomalies.to_json()
    assert ours.counts.tolist() == theirs.counts.tolist()


def test_more_news_than_slots_are_all_learnt() -> None:
    """Every message disagrees with the directory: the kernel stops again and again to report."""
    count = 2 * kernels.LEARN_SLOTS + 17
    add = b"\0\x24A\0\x01" + bytes(21) + b"%-8s" + bytes(4)
    data = b"".join(add % (b"S%d" % (n % 7)) for n in range(count))
    ours, law = (
        run(make, data, [count + 1], False, [(1, "AAPL")]) for make in (NumbaParser, ReferenceParser)
    )
    assert ours == law
    assert ours[3]["symbol_mismatch"]["count"] == count


def test_more_skipped_than_slots_are_all_counted() -> None:
    data = b"\0\x02ZZ" * 5000 + b"\0\x02AA" * 3000
    ours, law = (run(make, data, [10], False, []) for make in (NumbaParser, ReferenceParser))
    assert ours == law
    assert ours[3]["unknown_type"]["count"] == 5000


def test_tables_longer_than_the_index_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trident_parser.numba_parser._INDEX_SLOTS", 3)
    frames = np.frombuffer(b"\0\x0cS" + bytes(10) + b"O" + b"\0\x02ZZ", np.uint8)
    frames = np.tile(frames, 10)
    rows = NumbaParser(Session()).parse_tables(frames)["S"]
    assert rows["seq"].tolist() == list(range(1, 21, 2))


@pytest.mark.parametrize("lenient", [False, True])
def test_real_files_are_parsed_as_the_reference_does(shared: Callable[..., Path], lenient: bool) -> None:
    import gzip

    data = shared("data", "itch50_runk", "locate-13-10k.bin").read_bytes()
    if lenient:
        data = gzip.decompress(shared("data", "ritch", "ex20101224.TEST_ITCH_50.gz").read_bytes())
    ours, law = (run(make, data, [4096], lenient, []) for make in (NumbaParser, ReferenceParser))
    assert ours == law
    assert len(ours[0]) == 64 * (12_012 if lenient else 10_000)
