"""Sequence engines against docs/contracts/sequence.md; rules' ids (SEQUENCE-n) with the tests."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import strategies as st

from trident_conformance import drive, questions, sequences, streams, vectors
from trident_conformance.engines import Engine, reference
from trident_conformance.evidence import given
from trident_conformance.proving import by_rows
from trident_core.contracts import Capability, Kind
from trident_core.dtypes import EVENT, Events
from trident_core.errors import PatternError, TridentError, UsageError
from trident_core.session import Session

WHERE = vectors.load("sequence_where")
MATCHES = vectors.load("sequence_match")
ERRORS = vectors.load("sequence_errors")


#: Questions of every kind of partition, clock and absence.
QUESTIONS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("A E+ D", {}),
    ("(A|F) (U|E)* D", {"within": "5ms"}),
    ("up up+", {"define": ["up: price > prev(price)"], "per": "symbol"}),
    ("A+ not D within 3ms", {"per": "symbol"}),
    ("F D?", {"per": "mpid"}),
    ("A (E E | X)?", {"per": "all"}),
    ("^ A E* $", {}),
]


class TestVectors:
    @pytest.mark.parametrize("vector", WHERE, ids=[v.label for v in WHERE])
    def test_conditions(self, sequence_engine: Engine, vector: vectors.Vector) -> None:
        """SEQUENCE-1 to 3, 9."""
        sequences.hold(sequence_engine.make(), vector.data)

    @pytest.mark.parametrize("vector", MATCHES, ids=[v.label for v in MATCHES])
    def test_matches(self, sequence_engine: Engine, vector: vectors.Vector) -> None:
        """SEQUENCE-10 to 16, 19 to 24, 30."""
        sequences.hold(sequence_engine.make(), vector.data)

    @pytest.mark.parametrize("vector", ERRORS, ids=[v.label for v in ERRORS])
    def test_refused(self, sequence_engine: Engine, vector: vectors.Vector) -> None:
        """SEQUENCE-4, 5: PatternError, at the byte offset of what cannot stand there."""
        error = sequences.refused(sequence_engine.make(), vector.data)
        position = vector.data["position"]
        refusal = "taken" if error is None else f"refused at {error.position}: {error.reason}"
        right = error is not None and error.position == position
        drive.equal("the answer", refusal, refusal if right else f"refused at {position}")


class TestConditions:
    def test_as_the_reference(self, sequence_engine: Engine, prove: Any) -> None:
        """SEQUENCE-1 to 3, 6: any condition on any events; `bounds` excludes none that is true."""
        session = questions.session()
        law = reference(Kind.SEQUENCE).make()

        def check(text: str, events: Events) -> None:
            given(condition=text, events=events)
            predicate = sequence_engine.make().predicate(text, session)
            expected = law.predicate(text, session).match(events)
            try:
                found = predicate.match(events)
            except UsageError:  # arithmetic that does not fit 64 bits
                return
            drive.equal(text, found.tolist(), expected.tolist())
            for event in events[expected]:
                drive.equal(f"the bounds that exclude {event}", _excluding(predicate.bounds, event), [])

        prove(check, examples=300, text=questions.conditions(), events=questions.wild_events())

    def test_arithmetic_that_does_not_fit(self, sequence_engine: Engine) -> None:
        """SEQUENCE-2: exact, or refused by UsageError."""
        events = np.zeros(3, EVENT)
        events["type"], events["qty"] = ord("A"), [1, 2**63, 2**64 - 1]
        for text, expected in (("qty - 1 > 5", [False, True, True]), ("qty + qty < 5", [True, False, False])):
            try:
                found = sequence_engine.make().predicate(text, Session()).match(events)
            except UsageError:
                continue
            drive.equal(text, found.tolist(), expected)

    def test_columns_of_any_kind(self, sequence_engine: Engine) -> None:
        """SEQUENCE-7: no events; read-only and strided ones; more than any block; nothing is written to."""
        events = np.zeros(1_500, EVENT)
        events["type"], events["qty"] = np.arange(1_500) % 90, np.arange(1_500)
        expected = (events["type"] == ord("A")) & (events["qty"] >= 700)
        predicate = sequence_engine.make().predicate("type = 'A' and shares >= 700", Session())
        events.flags.writeable = False
        before = events.tobytes()
        for part in (slice(None), slice(None, None, 3), slice(700, 1_213), slice(0, 0)):
            drive.equal("true", predicate.match(events[part]).tolist(), expected[part].tolist())
        assert events.tobytes() == before, "match wrote to the events"

    def test_bounds_are_what_a_scan_takes(self, sequence_engine: Engine) -> None:
        """SEQUENCE-6: closed ranges; None or the bytes of types; None or locates, u32 and ascending."""
        for text in (
            "type in ('A', 'F') and seq between 5 and 9", "symbol ~ '^A'", "ts >= 09:30", "qty > 1",
            "locate = 3 or locate = 2", "price is null", "1 > 2", "symbol = 'NONE'",
        ):  # fmt: skip
            bounds: Any = sequence_engine.make().predicate(text, questions.session()).bounds
            types, locates = bounds.scan_types(), bounds.scan_locates()
            drive.equal(f"ends of ranges: {text}", (len(bounds.seq), len(bounds.ts)), (2, 2))
            drive.equal(f"scan_types(): {text}", types is None or isinstance(types, bytes), True)
            drive.equal(f"impossible: {text}", bounds.impossible in (True, False), True)
            if locates is not None:
                drive.equal(f"scan_locates(): {text}", locates.dtype, np.dtype(np.uint32))
                drive.equal(f"scan_locates(): {text}", locates.tolist(), sorted(set(locates.tolist())))

    def test_texts_by_another_engine(self, sequence_engine: Engine) -> None:
        """SEQUENCE-8: `texts` answers the patterns inside conditions."""
        texts = reference(Kind.QUERY).make()
        predicate = sequence_engine.make().predicate("symbol ~ '^M|^A$'", questions.session(), texts=texts)
        events = np.zeros(5, EVENT)
        events["seq"], events["locate"], events["type"] = np.arange(1, 6), np.arange(5), ord("A")
        drive.equal("true at", sequences.true_at(predicate, events), [3, 4])


def _excluding(bounds: Any, event: Any) -> list[str]:
    """Which bounds an event is outside of, asked as a scan asks: by the members of `ScanBounds` alone."""
    types, locates = bounds.scan_types(), bounds.scan_locates()
    inside = {
        "impossible": not bounds.impossible,
        f"seq {bounds.seq}": bounds.seq[0] <= int(event["seq"]) <= bounds.seq[1],
        f"ts {bounds.ts}": bounds.ts[0] <= int(event["ts"]) <= bounds.ts[1],
        f"scan_types() {types!r}": types is None or int(event["type"]) in types,
        f"scan_locates() {locates}": locates is None or int(event["locate"]) in locates,
    }
    return [name for name, fine in inside.items() if not fine]


class TestMatches:
    def test_as_the_reference(self, sequence_engine: Engine, prove: Any) -> None:
        """SEQUENCE-10 to 18, 20 to 23: any pattern on any events, in any batches; and counted only."""
        session = questions.session()
        law = reference(Kind.SEQUENCE).make()

        def check(pattern: str, seed: int, size: int, per: str, within: str | None, absent: str) -> None:
            how = {"define": questions.defined(pattern), "per": per, "within": within}
            match = pattern + absent

            def rows(events: Events) -> None:
                expected = sequences.answer(law, match, [events], session, **how)
                engine, batches = sequence_engine.make(), drive.batches(events, [size])
                drive.equal("matches", sequences.answer(engine, match, batches, session, **how), expected)
                counting = engine.search(match, session, count_only=True, **how)
                for batch in batches:
                    counting.feed(batch)
                counting.finish()
                drive.equal("counted", counting.total, len(expected))

            by_rows(rows, questions.flow(np.random.default_rng(seed), 40))

        prove(
            check,
            examples=400,
            pattern=questions.row_patterns(),
            seed=st.integers(0, 10_000),
            size=st.integers(1, 45),
            per=st.sampled_from(["order", "order", "symbol", "mpid", "all"]),
            within=st.sampled_from([None, None, "2ms", "6ms"]),
            absent=st.sampled_from(["", "", "", " not D within 3ms", " not E within 1ms"]),
        )

    @pytest.mark.parametrize("size", [1, 7])
    def test_any_split(self, sequence_engine: Engine, size: int) -> None:
        """SEQUENCE-17: batches of one event, and of seven."""
        session, engine, total = questions.session(), sequence_engine.make(), 0
        for seed, (match, how) in enumerate(QUESTIONS):
            events = questions.flow(np.random.default_rng(seed), 150)
            total += len(sequences.answer(engine, match, [events], session, **how))

            def rows(events: Events, match: str = match, how: dict[str, Any] = how) -> None:
                expected = sequences.answer(engine, match, [events], session, **how)
                found = sequences.answer(engine, match, drive.batches(events, [size]), session, **how)
                drive.equal(match, found, expected)

            streams.shrunk(rows, events)
        assert total > 50

    def test_labels_as_the_reference(self, sequence_engine: Engine, prove: Any) -> None:
        """SEQUENCE-30: what each row was taken for, and values by it."""
        session = questions.session()
        law = reference(Kind.SEQUENCE).make()
        measures = ["n = count(*)", "low = min(price)", "taken = sum(E.shares)", "last(ts) - first(ts)"]

        def check(pattern: str, seed: int, per: str, all_rows: bool) -> None:
            how = {"define": questions.defined(pattern), "per": per, "all_rows": all_rows}
            how["measures"] = measures if "E" in pattern else measures[:2]

            def rows(events: Events) -> None:
                expected = sequences.measured(law, pattern, events, session, **how)
                found = sequences.measured(sequence_engine.make(), pattern, events, session, **how)
                drive.equal("rows", found, expected)

            by_rows(rows, questions.flow(np.random.default_rng(seed), 30))

        per = st.sampled_from(["order", "symbol"])
        seed, every = st.integers(0, 10_000), st.booleans()
        prove(check, examples=200, pattern=questions.row_patterns(), seed=seed, per=per, all_rows=every)

    def test_wild_events(self, sequence_engine: Engine, prove: Any) -> None:
        """SEQUENCE-20: references that repeat, replaces by themselves and by 0, orders that nobody added."""
        law = reference(Kind.SEQUENCE).make()

        def check(pattern: str, seed: int, size: int) -> None:
            rng = np.random.default_rng(seed)
            events = np.zeros(60, EVENT)
            events["seq"] = np.arange(60) + 1
            events["type"] = rng.choice(list(b"AFECXDUP"), 60)
            events["ref"], events["ref2"] = rng.integers(0, 6, 60), rng.integers(0, 6, 60)
            events["qty"] = rng.choice(np.array([0, 1, 100], np.uint64), 60)

            def rows(events: Events) -> None:
                expected = sequences.answer(law, pattern, [events], Session())
                batches = drive.batches(events, [size])
                found = sequences.answer(sequence_engine.make(), pattern, batches, Session())
                drive.equal("matches", found, expected)

            by_rows(rows, events)

        patterns = ["A .*? D", "^ . .+ $", "(A|U) E*", ". (U|D)", "^ .{2,3}? $"]
        seeds, sizes = st.integers(0, 10_000), st.integers(1, 60)
        prove(check, examples=400, pattern=st.sampled_from(patterns), seed=seeds, size=sizes)

    def test_wrong_questions(self, sequence_engine: Engine) -> None:
        """SEQUENCE-5: options that do not exist, variables that the pattern has not."""
        for wrong in (
            {"per": "firm"}, {"within": "soon"}, {"skip": "over"}, {"skip": "last:E"},
            {"define": ["big: type = 'A'"]}, {"measures": ["n = sum(E.shares)"]},
        ):  # fmt: skip
            with pytest.raises(UsageError):
                sequence_engine.make().search("A D", Session(), **wrong)

    def test_what_is_not_linear(self, sequence_engine: Engine) -> None:
        """SEQUENCE-60: answered as the reference does, or refused with an error that has the option's word or
        the variable's name in it, in whatever case."""
        events = questions.flow(np.random.default_rng(3), 60)
        law, engine = reference(Kind.SEQUENCE).make(), sequence_engine.make()
        for match, how, word in (
            ("A E", {"skip": "next", "per": "all"}, "skip"),
            ("A up", {"define": ["up: price > A.price"], "per": "symbol"}, "up"),
            ("A many*", {"define": ["many: sum(qty) < 500"], "per": "symbol"}, "many"),
        ):
            try:
                found = sequences.answer(engine, match, [events], Session(), **how)
            except TridentError as error:
                _names(error, word)
            else:
                drive.equal(match, found, sequences.answer(law, match, [events], Session(), **how))


def _names(error: TridentError, word: str) -> None:
    """Hold that an error has a word in its text, in whatever case."""
    found = re.search(rf"\b{re.escape(word)}\b", str(error), re.IGNORECASE)
    drive.equal("the error's text", str(error), str(error) if found else f"a text with the word {word!r}")


@pytest.mark.needs_capability(Capability.STREAMING)
class TestStreaming:
    def test_given_when_they_are_final(self, sequence_engine: Engine) -> None:
        """SEQUENCE-40: with the event after which nothing can change them, and not before."""
        for match, how, types, expected in (
            ("A E* D", {}, "AED", [0, 0, 1]),
            ("A E*", {"per": "all"}, "AEEPA", [0, 0, 0, 1, 0]),
            ("A E*?", {"per": "all"}, "AEA", [1, 0, 1]),
            ("A (E E D)?", {"per": "all"}, "AEEP", [0, 0, 0, 1]),
            ("A E* $", {}, "AED", [0, 0, 0]),
            ("E $", {}, "AXE", [0, 0, 0]),
            ("A E*", {"per": "all", "within": "1us"}, "AEE", [0, 0, 1]),
            ("A not D within 2us", {"per": "all"}, "AEEPA", [0, 0, 0, 1, 0]),
        ):
            search = sequence_engine.make().search(match, Session(), **how)
            events = sequences.events_of({"types": types})
            found = [len(search.feed(events[at : at + 1])) for at in range(len(events))]
            drive.equal(f"given by {match} event by event", found, expected)

    def test_an_ended_order_settles_its_match(self, sequence_engine: Engine) -> None:
        """SEQUENCE-40: the end of a partition is the end of what hung on a longer match in it."""
        search = sequence_engine.make().search("A E* $", Session())
        events = sequences.events_of({"types": "AE"})
        events["qty"][1] = 100
        drive.equal("given", [len(search.feed(events[:1])), len(search.feed(events[1:]))], [0, 1])

    def test_saved_and_loaded_between(self, sequence_engine: Engine, tmp_path: Path) -> None:
        """SEQUENCE-17, 41."""
        session, path = questions.session(), tmp_path / "state"
        law = reference(Kind.SEQUENCE).make()
        rng = np.random.default_rng(7)
        for match, how in QUESTIONS:
            events = questions.flow(rng, 120)
            search = sequence_engine.make().search(match, session, **how)
            found = []
            for batch in drive.batches(events, rng.integers(1, 30, 30).tolist()):
                found.append(search.feed(batch))
                search.save(path)
                search = sequence_engine.make().search(match, session, **how)
                search.load(path)
                drive.equal("last_seq", search.last_seq, int(batch["seq"][-1]))
            found.append(search.finish())
            expected = sequences.answer(law, match, [events], session, **how)
            drive.equal(match, sequences.told(search, found), expected)

    def test_states_that_do_not_fit(self, sequence_engine: Engine, tmp_path: Path) -> None:
        """SEQUENCE-42."""
        path = tmp_path / "state"
        search = sequence_engine.make().search("A D", Session())
        search.feed(questions.flow(np.random.default_rng(1), 50))
        search.save(path)
        for match, how in (("A E", {}), ("A D", {"per": "symbol"}), ("A D", {"within": "1s"})):
            with pytest.raises(UsageError):
                sequence_engine.make().search(match, Session(), **how).load(path)
        raw = path.read_bytes()
        for cut in (0, 10, len(raw) // 2, len(raw) - 1):
            path.write_bytes(raw[:cut])
            with pytest.raises(UsageError):
                sequence_engine.make().search("A D", Session()).load(path)
        with pytest.raises(UsageError):
            search.load(tmp_path / "none")
        with pytest.raises(UsageError):
            search.save(tmp_path / "no" / "folder")

    def test_orders_that_ended_take_no_room(self, sequence_engine: Engine, tmp_path: Path) -> None:
        """SEQUENCE-44: what is remembered does not grow with the orders that came and went."""
        search, sizes = sequence_engine.make().search("A D", Session()), []
        for batch in range(40):
            events = np.zeros(1_000, EVENT)
            events["seq"] = np.arange(1_000) + 1 + 1_000 * batch
            events["type"] = np.tile(list(b"AD"), 500)
            events["ref"] = np.repeat(np.arange(500) + 1 + 500 * batch, 2)
            drive.equal("matches", len(search.feed(events)), 500)
            search.save(tmp_path / "state")
            sizes.append((tmp_path / "state").stat().st_size)
        grown = sizes[-1] - sizes[1]
        assert grown < 10 * 19_000, f"{grown:,} bytes more after 19,000 orders that have ended"

    def test_every_start_scans_on(self, sequence_engine: Engine) -> None:
        """SEQUENCE-43: each match hangs on a row that never comes: quadratic if each start were scanned."""
        n = 100_000
        events = np.zeros(n, EVENT)
        events["seq"], events["type"] = np.arange(1, n + 1), ord("E")
        search = sequence_engine.make().search("E (E* D)?", Session(), per="all")
        drive.equal("given before the end", len(search.feed(events)), 0)
        drive.equal("given at the end", len(search.finish()), n)

    def test_open_starts_in_a_window(self, sequence_engine: Engine) -> None:
        """SEQUENCE-43, 60: the right answer, or an error that names the cap."""
        events = np.zeros(3_001, EVENT)
        events["seq"] = np.arange(1, 3_002)
        events["type"] = [*b"A" * 3_000, ord("D")]
        try:
            found = sequences.answer(
                sequence_engine.make(), "A+ E* D", [events], Session(), per="all", within="1h"
            )
        except TridentError as error:
            _names(error, "cap")
        else:
            drive.equal("matches", [(first, last) for _, first, last, _, _ in found], [(1, 3_001)])


@pytest.mark.skipif(find_spec("sqlglot") is None, reason="needs sqlglot (extra sql)")
class TestSql:
    FROM = "SELECT {what} FROM events MATCH_RECOGNIZE (PARTITION BY symbol ORDER BY seq {how})"

    @pytest.mark.parametrize(
        ("what", "how"),
        [
            ("*", "MEASURES first(ts) AS opened, count(*) AS n PATTERN (A E* D) "
             "DEFINE A AS type = 'A', E AS type = 'E', D AS type = 'D'"),
            ("symbol, n", "MEASURES count(*) AS n AFTER MATCH SKIP TO NEXT ROW PATTERN (A X*) "
             "DEFINE A AS type = 'A', X AS type <> 'A'"),
            ("*", "MEASURES classifier() AS label ALL ROWS PER MATCH PATTERN (LOW? UP{2,}) "
             "DEFINE UP AS qty > prev(qty), LOW AS qty < 200"),
        ],
        ids=["one-row", "skip-to-next", "all-rows"],
    )  # fmt: skip
    def test_as_the_reference(self, sequence_engine: Engine, what: str, how: str) -> None:
        """SEQUENCE-50."""
        text = self.FROM.format(what=what, how=how)
        events, session = questions.flow(np.random.default_rng(5), 150), questions.session()
        expected = reference(Kind.SEQUENCE).make().sql(text, events, session)
        assert len(expected[1]) > 3
        drive.equal("names and rows", sequence_engine.make().sql(text, events, session), expected)

    def test_refused(self, sequence_engine: Engine) -> None:
        """SEQUENCE-50: what is no such clause, or not of the language."""
        for text in ("SELECT 1", self.FROM.format(what="*", how="PATTERN (A) DEFINE A AS median(qty) > 1")):
            with pytest.raises(PatternError):
                sequence_engine.make().sql(text, np.zeros(2, EVENT), Session())
