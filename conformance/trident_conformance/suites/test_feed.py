"""Feeds against docs/contracts/feed.md. The rules' ids (FEED-n) stand with the tests that hold them.

A feed is asked about those samples that it recognises: the project's own, and the files of --sample.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from trident_conformance import drive, sources
from trident_conformance.engines import Engine
from trident_conformance.evidence import given
from trident_core.contracts import Chunk, FeedOptions
from trident_core.decode import SEQ_MAX
from trident_core.errors import InputError, TridentError, UsageError
from trident_core.session import Session

FOREIGN = {
    "png": b"\x89PNG\r\n\x1a\n" + bytes(200),
    "zip": b"PK\x03\x04" + bytes(200),
    "elf": b"\x7fELF\x02\x01\x01" + bytes(200),
    "prose": b"It was the best of times, it was the worst of times, it was the age of wisdom\n" * 9,
    "zeros": bytes(4_096),
}


@dataclass
class Read:
    """All that a feed gives of an input. `starts`: place in `data` and number of each chunk that has one."""

    data: bytes
    starts: list[tuple[int, int]]
    anomalies: dict[str, list[Any]]
    error: str = ""


def make(engine: Engine, source: sources.Memory, chunk_bytes: int = 1 << 20) -> Any:
    return engine.make(source, Session(), FeedOptions(chunk_bytes=chunk_bytes))


def read(engine: Engine, data: bytes, chunk_bytes: int = 1 << 20, delivers: int = 1 << 20) -> Read:
    """Everything, or all before the error that an input may end with."""
    given(input=np.frombuffer(data[:600], np.uint8), chunk_bytes=chunk_bytes, delivers=delivers)
    feed = make(engine, sources.Memory(data, delivers=delivers), chunk_bytes)
    found, starts, error = bytearray(), [], ""
    try:
        for chunk in feed:
            if chunk.seq is not None:
                starts.append((len(found), chunk.seq))
            found += chunk.data.tobytes()
    except InputError as refused:
        error = str(refused)
    return Read(bytes(found), starts, drive.counted(feed.anomalies), error)


@pytest.fixture
def known(
    feed_engine: Engine, sample_files: Mapping[str, bytes], pytestconfig: pytest.Config
) -> dict[str, bytes]:
    """The samples that the feed under test recognises. Without one, a feed that was asked for fails: nothing
    would be known of it; others are skipped."""
    asked_for = bool(pytestconfig.getoption("feed"))
    found = sources.known_by(feed_engine.factory, {**sources.samples(), **sample_files})
    if not found:
        told = f"{feed_engine.label} recognises no sample: give a small file of its format with --sample"
        if asked_for:
            pytest.fail(told, pytrace=False)
        pytest.skip(told)
    return found


class TestChunks:
    def test_the_factory_reads_nothing_and_chunks_come_once(
        self, feed_engine: Engine, known: dict[str, bytes]
    ) -> None:
        """FEED-1."""
        for data in known.values():
            source = sources.Memory(data)
            feed = make(feed_engine, source)
            assert source.asked == 0, "the factory read"
            assert sum(len(chunk.data) for chunk in feed) > 0
            assert list(feed) == [], "chunks came again"

    @pytest.mark.parametrize("chunk_bytes", [1, 64, 1 << 20])
    def test_what_a_chunk_is(self, feed_engine: Engine, known: dict[str, bytes], chunk_bytes: int) -> None:
        """FEED-2, 3, 4, 5: its array, numbers that grow, its place in the source, its size."""
        for name, data in known.items():
            before: Chunk | None = None
            copy, last, offset = b"", 0, -1
            for chunk in make(feed_engine, sources.Memory(data), chunk_bytes):
                array = chunk.data
                assert (array.dtype, array.ndim) == (np.uint8, 1), name
                assert len(array) >= 1
                assert not array.flags.writeable, "data is writeable"
                if chunk.seq is not None:
                    assert last < chunk.seq <= SEQ_MAX, f"{name}: number {chunk.seq} after {last}"
                    last = chunk.seq
                assert offset <= chunk.offset <= len(data), f"{name}: offset {chunk.offset} after {offset}"
                offset = chunk.offset
                if len(array) > chunk_bytes:
                    size = 2 + int.from_bytes(array[:2].tobytes(), "big")
                    assert len(array) == size or not _itch(feed_engine), (
                        f"{name}: more than {chunk_bytes} bytes"
                    )
                before, copy = chunk, array.tobytes()
                assert before.data.tobytes() == copy

    def test_a_size_of_chunks_must_be_positive(self, feed_engine: Engine, known: dict[str, bytes]) -> None:
        """FEED-5."""
        for data in known.values():
            with pytest.raises(UsageError):
                list(make(feed_engine, sources.Memory(data), 0))

    @pytest.mark.parametrize(
        ("chunk_bytes", "delivers"), [(1 << 20, 1), (1 << 20, 777), (61, 1 << 20), (1_000, 13)]
    )
    def test_any_size_gives_the_same(
        self, feed_engine: Engine, known: dict[str, bytes], chunk_bytes: int, delivers: int
    ) -> None:
        """FEED-6: the same bytes and anomalies; every number that both give is at the same message."""
        for data in known.values():
            law = read(feed_engine, data)
            found = read(feed_engine, data, chunk_bytes, delivers)
            drive.equal("bytes", found.data, law.data)
            drive.equal("anomalies", found.anomalies, law.anomalies)
            places = dict(law.starts)
            for at, number in found.starts:
                assert places.get(at, number) == number, f"number {number} at byte {at}, not {places[at]}"


class TestAnyBytes:
    def test_cut_anywhere(self, feed_engine: Engine, known: dict[str, bytes], quick: bool) -> None:
        """FEED-7: what came before a cut is as it was, and the end is counted or refused in one line."""
        for name, data in known.items():
            whole = read(feed_engine, data).data
            step = max(1, len(data) // (40 if quick else 200))
            for cut in range(1, len(data), step):
                found = read(feed_engine, data[:cut])
                assert whole.startswith(found.data) or found.data.startswith(whole[: len(found.data) - 1]), (
                    f"{name} cut at {cut}: other bytes"
                )
                assert "\n" not in found.error

    def test_damaged_anywhere(self, feed_engine: Engine, known: dict[str, bytes], quick: bool) -> None:
        """FEED-7, 8: bytes changed at random raise nothing but InputError."""
        pick = random.Random(5)
        for data in known.values():
            for _ in range(20 if quick else 150):
                damaged = bytearray(data)
                for _ in range(pick.choice((1, 1, 3))):
                    damaged[pick.randrange(len(damaged))] = pick.choice(
                        (0, 1, 0x7F, 0xFF, pick.randrange(256))
                    )
                found = read(feed_engine, bytes(damaged))
                assert len(found.data) <= 4 * len(data) + 4_096

    def test_any_bytes_when_forced(self, feed_engine: Engine, prove: Any) -> None:
        """FEED-7: a user may force a feed on anything."""

        def check(data: bytes) -> None:
            read(feed_engine, data, delivers=7)

        prove(check, data=st.binary(max_size=300))


class TestDetection:
    @pytest.mark.parametrize("name", sorted(FOREIGN))
    def test_foreign_bytes(self, feed_engine: Engine, name: str) -> None:
        """FEED-9."""
        assert feed_engine.factory.detect(FOREIGN[name], "12302019.NASDAQ_ITCH50") == 0

    def test_any_head(self, feed_engine: Engine, prove: Any) -> None:
        """FEED-9: 0 to 100 for any bytes, empty ones too, and no error."""

        def check(head: bytes, name: str) -> None:
            score = feed_engine.factory.detect(head, name)
            assert isinstance(score, int)
            assert 0 <= score <= 100

        prove(check, head=st.binary(max_size=200), name=st.text(max_size=12))

    def test_the_name_only_breaks_ties(self, feed_engine: Engine, known: dict[str, bytes]) -> None:
        """FEED-9: its own format is recognised under any name."""
        for data in known.values():
            for name in ("x", "day.csv", "12302019.NASDAQ_ITCH50", "a.pcap"):
                assert feed_engine.factory.detect(data[: sources.HEAD], name) > 0


def _itch(engine: Engine) -> bool:
    return "itch50" in engine.spec.protocols


def test_errors_have_hints(feed_engine: Engine) -> None:
    """FEED-7: an input that a feed refuses is refused with a hint."""
    try:
        list(make(feed_engine, sources.Memory(b"\x00\x01\x02 no format at all")))
    except TridentError as error:
        assert error.hint  # noqa: PT017  raising is allowed, not demanded
