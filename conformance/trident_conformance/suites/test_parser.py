"""Parsers against docs/contracts/parser.md. The rules' ids (PARSER-n) stand with the tests that hold them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from trident_conformance import drive, expect, streams, vectors
from trident_conformance.engines import Engine, reference
from trident_core.contracts import Capability, Chunk, Kind, Status
from trident_core.decode import decode
from trident_core.dtypes import EVENT, Frames
from trident_core.errors import UsageError
from trident_core.session import Session

VECTORS = vectors.load("parser")
WITH_ROWS = [v for v in VECTORS if "rows" in v.data]


def fresh(engine: Engine, data: dict[str, Any] | None = None) -> Any:
    """A parser with an empty session, lenient when the vector says so (skips where that is not declared)."""
    if data and data.get("lenient"):
        if not engine.declares(Capability.LENIENT):
            pytest.skip(f"{engine.label} does not declare the capability {Capability.LENIENT}")
        return engine.make(Session(), lenient=True)
    return engine.make(Session())


def by_reference(data: Frames, **options: Any) -> drive.Parsed:
    return drive.parse(reference(Kind.PARSER).make(Session(), **options), [data])


@pytest.mark.parametrize("vector", VECTORS, ids=[v.label for v in VECTORS])
class TestVectors:
    """PARSER-1 to 17: every message type, framing, skipped messages, the directory."""

    def test_at_once(self, parser_engine: Engine, vector: vectors.Vector) -> None:
        parser = fresh(parser_engine, vector.data)
        frames = vectors.to_frames(vector.data["frames"])
        expect.parsed(drive.parse(parser, [frames]), vector.data)

    def test_cut_at_every_byte(self, parser_engine: Engine, vector: vectors.Vector) -> None:
        """PARSER-10: in two pieces, cut anywhere; in single bytes; and with room for one event at a time."""
        frames = vectors.to_frames(vector.data["frames"])
        if vector.data.get("status") == "END":  # what follows the mark is not this session's: nothing to cut
            frames = frames[: vector.data["consumed"]]
        for place in range(1, len(frames)):
            parser = fresh(parser_engine, vector.data)
            found = drive.parse(parser, drive.cut(frames, [place]), room=1 + place % 2)
            expect.parsed(found, vector.data)
        parser = fresh(parser_engine, vector.data)
        expect.parsed(drive.parse(parser, drive.cut(frames, range(len(frames))), room=1), vector.data)

    def test_bytes_behind_the_input_are_not_read(self, parser_engine: Engine, vector: vectors.Vector) -> None:
        """PARSER-5: whatever stands behind the array in memory has no part in the answer."""
        frames = vectors.to_frames(vector.data["frames"])
        for behind in (0x00, 0xFF):
            wider = np.concatenate([frames, np.full(64, behind, np.uint8)])
            parser = fresh(parser_engine, vector.data)
            out = np.zeros(64, EVENT)
            consumed, count, status = parser.parse_into(wider[: len(frames)], out)
            assert consumed == vector.data.get("consumed", len(frames))
            assert status.name == vector.data.get("status", "OK")
            drive.same(out[:count], vectors.to_events(vector.data["events"]), "events")


class TestAnyInput:
    def test_as_the_reference(self, parser_engine: Engine, prove: Any) -> None:
        """PARSER-1 to 17, 24: any messages, cut anywhere, in any room, give what the reference gives."""

        def check(data: Frames, places: list[int], room: int) -> None:
            found = drive.parse(fresh(parser_engine), drive.cut(data, places), room)
            drive.agree(found, by_reference(data))

        places = st.lists(st.integers(0, 400), max_size=8)
        prove(check, data=streams.frames(), places=places, room=st.integers(1, 9))

    def test_any_bytes(self, parser_engine: Engine, prove: Any) -> None:
        """PARSER-6: bytes never raise anything."""

        def check(data: Frames) -> None:
            drive.agree(drive.parse(fresh(parser_engine), [data]), by_reference(data))

        prove(check, data=streams.junk())

    @pytest.mark.needs_capability(Capability.LENIENT)
    def test_lenient_as_the_reference(self, parser_engine: Engine, prove: Any) -> None:
        """PARSER-3."""

        def check(data: Frames, places: list[int], room: int) -> None:
            parser = parser_engine.make(Session(), lenient=True)
            found = drive.parse(parser, drive.cut(data, places), room)
            drive.agree(found, by_reference(data, lenient=True))

        places = st.lists(st.integers(0, 400), max_size=8)
        prove(check, data=st.one_of(streams.frames(), streams.junk()), places=places, room=st.integers(1, 9))

    @pytest.mark.parametrize("seed", [1, 2])
    def test_a_busy_day(self, parser_engine: Engine, seed: int, quick: bool) -> None:
        """A longer input with every type, unknown types and wrong lengths, through the driver."""
        data = np.frombuffer(streams.day_bytes(seed, 2_000 if quick else 12_000), np.uint8)
        expected = by_reference(data)
        for chunk, batch in ((len(data), 4096), (1000, 777), (37, 1024)):
            parser = fresh(parser_engine)
            pieces = drive.cut(data, range(0, len(data), chunk))
            chunks = (
                Chunk(piece, None, at) for piece, at in zip(pieces, range(0, len(data), chunk), strict=True)
            )
            events = np.concatenate([batch.copy() for batch in decode(chunks, parser, batch=batch)])
            drive.same(events, expected.events, f"events in chunks of {chunk}")
            assert drive.counted(parser.anomalies) == expected.anomalies
            assert {chr(i): int(n) for i, n in enumerate(parser.counts) if n} == expected.counts
            assert parser.session.directory == _directory(expected)


def _directory(parsed: drive.Parsed) -> Any:
    from trident_core.session import Directory, Instrument

    return Directory(Instrument(locate, *entry) for locate, entry in parsed.directory.items())


class TestState:
    FRAMES = vectors.to_frames(
        [
            "0013 44 0001 0000 000000000005 0000000000000001",
            "0001 7a",
            "0013 44 0001 0000 000000000005 0000000000000002",
        ]
    )

    def test_the_caller_sets_seq_and_position(self, parser_engine: Engine) -> None:
        """PARSER-7, 8."""
        parser = fresh(parser_engine)
        assert (parser.next_seq, parser.position) == (1, 0)
        parser.next_seq, parser.position = 1 << 40, 1 << 41
        out = np.zeros(4, EVENT)
        parser.parse_into(self.FRAMES, out)
        assert out["seq"][:2].tolist() == [1 << 40, (1 << 40) + 2]
        assert parser.next_seq == (1 << 40) + 3
        assert parser.position == (1 << 41) + len(self.FRAMES)
        assert drive.counted(parser.anomalies) == {"unknown_type": [1, [(1 << 41) + 21]]}

    def test_a_full_out_comes_before_the_next_message(self, parser_engine: Engine) -> None:
        """PARSER-4: OUT_FULL whenever bytes are left, whatever they are; a skipped message counts once."""
        parser = fresh(parser_engine)
        out = np.zeros(1, EVENT)
        assert parser.parse_into(self.FRAMES[:21], out) == (21, 1, Status.OK)
        assert parser.parse_into(self.FRAMES[:22], out) == (21, 1, Status.OUT_FULL)
        assert parser.parse_into(self.FRAMES, out) == (21, 1, Status.OUT_FULL)
        assert not parser.anomalies
        assert parser.counts[ord("z")] == 0

    def test_a_message_as_long_as_a_prefix_can_say(self, parser_engine: Engine) -> None:
        """PARSER-1: 65,535 bytes."""
        data = np.concatenate([np.frombuffer(b"\xff\xff~" + bytes(65_534), np.uint8), self.FRAMES])
        found = drive.parse(fresh(parser_engine), [data])
        assert found.events["seq"].tolist() == [2, 4]
        assert found.anomalies == {"unknown_type": [2, [0, 65_537 + 21]]}

    def test_the_directory_may_be_the_callers(self, parser_engine: Engine) -> None:
        """PARSER-13, 15: what the session already knows counts."""
        session = vectors.to_session({"1": "KNOWN"})
        parser = parser_engine.make(session)
        frame = vectors.to_frames(["0014 4e 0001 0000 000000000005 4e45572020202020 41"])
        parser.parse_into(frame, np.zeros(1, EVENT))
        assert session.directory.symbol(1) == "KNOWN"
        assert drive.counted(parser.anomalies) == {"symbol_mismatch": [1, [0]]}


class TestArrays:
    def test_out_in_the_middle_of_an_array(self, parser_engine: Engine) -> None:
        """PARSER-5: rows before and after are not touched."""
        buffer = drive.canaries(8, EVENT)
        result = fresh(parser_engine).parse_into(TestState.FRAMES, buffer[3:6])
        assert result == (len(TestState.FRAMES), 2, Status.OK)
        assert drive.untouched(buffer[:3])
        assert drive.untouched(buffer[5:])

    def test_the_last_byte_before_a_forbidden_page(self, parser_engine: Engine) -> None:
        """PARSER-5, trap 13: each message type stands right before memory that must not be read."""
        done = subprocess.run(
            [sys.executable, "-m", "trident_conformance.guard", parser_engine.spec.factory],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, (
            f"exit {done.returncode} (negative: a signal)\n{done.stdout}{done.stderr}"
        )

    @pytest.mark.parametrize(
        ("frames", "out"),
        [
            (np.zeros(8, np.int8), np.zeros(1, EVENT)),
            (np.zeros((2, 4), np.uint8), np.zeros(1, EVENT)),
            (np.zeros(16, np.uint8)[::2], np.zeros(1, EVENT)),
            (np.zeros(8, np.uint8), np.zeros(0, EVENT)),
            (np.zeros(8, np.uint8), np.zeros(64, np.uint8)),
            (np.zeros(8, np.uint8), np.zeros(4, EVENT)[::2]),
        ],
        ids=["frames-i8", "frames-2d", "frames-strided", "out-empty", "out-u8", "out-strided"],
    )
    def test_wrong_arrays(self, parser_engine: Engine, frames: Any, out: Any) -> None:
        """PARSER-6."""
        with pytest.raises(UsageError):
            fresh(parser_engine).parse_into(frames, out)

    def test_out_that_may_not_be_written(self, parser_engine: Engine) -> None:
        """PARSER-6."""
        out = np.zeros(4, EVENT)
        out.flags.writeable = False
        with pytest.raises(UsageError):
            fresh(parser_engine).parse_into(TestState.FRAMES, out)


@pytest.mark.needs_capability(Capability.TABLES)
class TestTables:
    @pytest.mark.parametrize("vector", WITH_ROWS, ids=[v.label for v in WITH_ROWS])
    def test_vectors(self, parser_engine: Engine, vector: vectors.Vector) -> None:
        """PARSER-18, 19: every field of every type, by the specification's name, texts with their padding."""
        tables = fresh(parser_engine).parse_tables(vectors.to_frames(vector.data["frames"]))
        assert sorted(tables) == sorted(vector.data["rows"])
        for letter, rows in vector.data["rows"].items():
            table = tables[letter]
            assert table.dtype.names is not None
            assert list(table.dtype.names) == ["seq", *rows[0]]
            assert table["seq"].tolist() == [1]
            for name, value in rows[0].items():
                expected = value.encode("latin-1") if isinstance(value, str) else value
                assert table[name][0] == expected, name
                assert table.dtype[name].byteorder in "=|<", f"{name} is not in native byte order"

    def test_as_the_reference(self, parser_engine: Engine, prove: Any) -> None:
        """PARSER-20: the rows, and what became of the parser's state."""

        def check(data: Frames) -> None:
            ours, law = fresh(parser_engine), reference(Kind.PARSER).make(Session())
            found, expected = ours.parse_tables(data), law.parse_tables(data)
            assert sorted(found) == sorted(expected)
            for letter, table in expected.items():
                assert found[letter].dtype == table.dtype, letter
                assert found[letter].tobytes() == table.tobytes(), letter
            assert (ours.next_seq, ours.position) == (law.next_seq, law.position)
            assert ours.counts.tolist() == law.counts.tolist()
            assert drive.counted(ours.anomalies) == drive.counted(law.anomalies)
            assert ours.session.directory == law.session.directory

        prove(check, data=streams.frames())

    def test_rows_and_events_agree(self, parser_engine: Engine) -> None:
        """PARSER-20: on every field that they share: numbers, times, locates."""
        data = np.frombuffer(streams.day_bytes(3, 1_500), np.uint8)
        events = drive.parse(fresh(parser_engine), [data]).events
        tables = fresh(parser_engine).parse_tables(data)
        assert sum(len(table) for table in tables.values()) == len(events)
        for letter, table in tables.items():
            same_type = events[events["type"] == ord(letter)]
            for column, field in (("seq", "seq"), ("ts", "timestamp"), ("locate", "stock_locate")):
                assert (table[field] == same_type[column]).all(), (letter, field)


@pytest.mark.needs_capability(Capability.ENCODE)
class TestEncoder:
    def test_events_come_back(self, parser_engine: Engine, prove: Any) -> None:
        """PARSER-21: parse(encode(e)) is e, but for seq, which the transport carries."""

        def check(seed: int, n: int) -> None:
            events = streams.day(seed, n)
            encoded = parser_engine.make(streams.session()).encode_events(events)
            found = drive.parse(parser_engine.make(streams.session()), [encoded])
            events["seq"] = np.arange(1, len(events) + 1)
            drive.same(found.events, events, "events")
            assert found.anomalies == {}

        prove(check, seed=st.integers(0, 1 << 30), n=st.integers(0, 80), examples=20)

    @pytest.mark.parametrize("vector", WITH_ROWS, ids=[v.label for v in WITH_ROWS])
    def test_vectors(self, parser_engine: Engine, vector: vectors.Vector) -> None:
        """PARSER-21: the event of each type back to bytes: what EVENT holds is the same again."""
        expected = vectors.to_events(vector.data["events"])
        session = vectors.to_session(vector.data["directory"])
        encoded = parser_engine.make(session).encode_events(expected)
        assert len(encoded) == len(vectors.to_frames(vector.data["frames"]))
        drive.same(drive.parse(fresh(parser_engine), [encoded]).events, expected, "events")

    @pytest.mark.needs_capability(Capability.TABLES)
    def test_rows_come_back_byte_for_byte(self, parser_engine: Engine, prove: Any) -> None:
        """PARSER-22."""

        def check(data: Frames) -> None:
            tables = fresh(parser_engine).parse_tables(data)
            for letter, rows in tables.items():
                encoded = fresh(parser_engine).encode_rows(letter, rows)
                again = fresh(parser_engine).parse_tables(encoded)[letter]
                again["seq"] = rows["seq"]
                assert again.tobytes() == rows.tobytes(), letter
                assert encoded.tobytes() == _messages_of(data, letter), letter

        prove(check, data=streams.frames(end=False, whole=True))

    @pytest.mark.parametrize(
        ("column", "value", "letter"),
        [
            ("type", ord("z"), "z"), ("locate", 1 << 16, "D"), ("ts", 1 << 48, "D"), ("qty", 1 << 32, "X"),
            ("price", 1 << 32, "A"), ("price", -1, "A"), ("price", 1, "D"), ("side", 66, "E"),
            ("ref2", 1, "A"), ("flags", 1, "E"), ("locate", 9, "A"), ("aux", 1, "X"),
        ],
        ids=lambda value: str(value),
    )  # fmt: skip
    def test_what_the_wire_cannot_hold(
        self, parser_engine: Engine, column: str, value: int, letter: str
    ) -> None:
        """PARSER-23: UsageError that names the index and the column."""
        events = np.zeros(3, EVENT)
        events["type"], events["locate"] = ord("D"), 1
        events["type"][2] = ord(letter)
        if column == "aux":
            events["aux"][2, 7] = value
        else:
            events[column][2] = value
        with pytest.raises(UsageError, match=rf"2.*{column}"):
            parser_engine.make(streams.session()).encode_events(events)


def _messages_of(data: Frames, letter: str) -> bytes:
    """The framed messages of one type and its length, by their prefixes."""
    from trident_parser.itch50 import LENGTHS

    raw, at, found = data.tobytes(), 0, b""
    while at < len(raw):
        size = int.from_bytes(raw[at : at + 2], "big")
        if raw[at + 2] == ord(letter) and size == LENGTHS[ord(letter)]:
            found += raw[at : at + 2 + size]
        at += 2 + size
    return found
