"""Scans of texts: the spans of the reference, whatever the window, the block, the table and the CPU."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trident_core.errors import UsageError
from trident_query.llvm import verify
from trident_query.llvm.engine import LlvmProgram, LlvmQuery
from trident_query.llvm.host import Host
from trident_query.llvm.windows import best_window, buckets, prefix
from trident_query.program import Question
from trident_query.reference import ReferenceQuery

NAMES = "AAPL|MSFT|GOOG|AMZN|TSLA|NVDA|META"
#: (pattern, flags, does every match have one length that the prefix covers)
PATTERNS = [
    ("abc", "", True), ("ab+c", "", False), ("(?:ab|ba)c?", "", False), (r"\babc", "", False),
    ("abc$", "m", False), ("a[bc]{2,}a", "", False), ("ABC", "i", True), ("x", "", True), (".", "", True),
    ("abca|bcab|aabb|cccc|acac|babb|caca|abab|bbcc|ccbb", "", True), ("abcabcabcabcabcabc", "", False),
    ("ab(?:c|$)", "", False), (r"abc\b", "", False), ("aba", "", True), (r"[ab]{3}c", "", True),
    ("(?:abc|cab)+", "", False), ("b.{0,3}?c", "s", False), ("(?:a|ab)(?:c|bcd)", "", False),
]  # fmt: skip


def text(rng: random.Random, size: int, letters: str = "abc") -> bytes:
    return "".join(rng.choice("ABC \n" if rng.random() < 0.1 else letters) for _ in range(size)).encode()


@pytest.mark.parametrize(("pattern", "flags", "exact"), PATTERNS)
def test_spans_and_ends(
    pattern: str, flags: str, exact: bool, hosts: list[Host], reference: ReferenceQuery
) -> None:
    rng, law = random.Random(pattern), reference.compile(pattern, flags=flags)
    for host in hosts:
        program = LlvmQuery(host).compile(pattern, flags=flags)
        for size in (0, 1, 2, 3, 17, 63, 64, 65, 67, 127, 128, 131, 140, 260, 1_500):
            data = text(rng, size)
            want = law.spans(data)
            assert program.spans(data) == want
            assert program.count_spans(data) == len(want)
            assert program.spans(data, 2) == want[:2]
            ends = law.ends(data)
            assert program.ends(data) == ends
            assert program.ends(data, 3) == ends[:3]
            assert program.count_ends(data) == len(ends)
        facts = program.explain()["texts"]
        assert facts["engine"] == "windows and a lazy automaton"
        assert facts["exact"] is exact


def test_nothing_behind_the_text_is_read(memory_end: Callable[[bytes], Any], hosts: list[Host]) -> None:
    for host in hosts:
        for pattern in ("abc", "ab+c", "a{5}b{5}c{5}"):
            program = LlvmQuery(host).compile(pattern)
            for size in (1, 3, 64, 70, 128, 131, 200, 4_096):
                data = text(random.Random(size), size)
                at_the_end = memory_end(data)
                assert program.spans(memoryview(at_the_end)) == program.spans(data)
                assert program.count_ends(memoryview(at_the_end)) == program.count_ends(data)


def test_more_candidates_than_a_batch_has_room_for(llvm: LlvmQuery) -> None:
    data = b"ab" * 100_000
    assert llvm.compile("ab").count_spans(data) == 100_000
    assert llvm.compile("a[bc]").spans(data)[-1] == (199_998, 200_000)
    assert llvm.compile("ab+").count_spans(data) == 100_000
    assert llvm.compile("aba").count_spans(data) == 50_000  # they overlap, so half of them
    assert llvm.compile("aba").count_ends(data) == 99_999


def prefix_of(pattern: str, flags: str = "") -> Any:
    return prefix(Question(pattern, flags).glushkov)


@pytest.mark.parametrize(
    ("pattern", "flags", "first"),
    [
        ("the ZVZZT", "", 4),  # the rarest three bytes, not the first
        (r"[A-Z]{4}XL[QZ]Z", "", 5),
        (r"\d{4}-\d\d", "", 3),
        ("e{9}qzx", "", 9),
        ("a", "", 0),
    ],
)
def test_the_window_is_the_rarest(pattern: str, flags: str, first: int) -> None:
    assert best_window(prefix_of(pattern, flags)).first == first


def test_alternatives_share_tables_of_eight_groups(llvm: LlvmQuery, reference: ReferenceQuery) -> None:
    rng = random.Random(2)
    names = ["".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=rng.randint(4, 7))) for _ in range(300)]
    assert len(buckets(prefix_of("|".join(names)).rows(0, 3))) == 8
    noise = "".join(rng.choices("ABCDEFGHIJ KLMNOPQRSTUVWXYZ", k=20_000))
    data = " ".join([noise, *names[::7], noise[:50]]).encode()
    program = llvm.compile("|".join(names))
    assert program.spans(data) == reference.compile("|".join(names)).spans(data)
    assert program.explain()["texts"]["how"] == "tables of 8 groups"
    assert program.explain()["prefilter"].endswith("by tables of 8 groups")
    seven = llvm.compile(NAMES)
    assert seven.count_spans(b" AAPL MSFT,GOOG AMZN TSLA NVDA META AAP") == 7


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("a*", "matches the empty text"),
        (r"\w+@", "may begin a match"),
        ("a[^\\x00-\\xff]", "nothing matches"),
    ],
)
def test_where_windows_are_of_no_use_another_engine_answers(
    pattern: str, why: str, llvm: LlvmQuery, reference: ReferenceQuery
) -> None:
    program, data = llvm.compile(pattern), b"aab@ baa@x"
    assert program.spans(data) == reference.compile(pattern).spans(data)
    assert program.ends(data) == reference.compile(pattern).ends(data)
    assert program.count_spans(data) == len(program.spans(data))
    assert why in program.explain()["texts"]["why"]


def test_a_walk_that_is_taken_again_and_again_is_given_up(llvm: LlvmQuery, reference: ReferenceQuery) -> None:
    """Each `ab` walks to the end of the text for a `z` that is not there: quadratic."""
    data = b"ab" * 3_000
    program = llvm.compile("ab.*z|abb")
    assert program.spans(data) == reference.compile("ab.*z|abb").spans(data) == []
    assert "walked over more than 8 times" in program.explain()["texts"]["given_up"]
    assert program.spans(b"abb ab z") == [(0, 8)]


def test_a_table_that_does_not_hold_all_states(
    monkeypatch: pytest.MonkeyPatch, llvm: LlvmQuery, reference: ReferenceQuery
) -> None:
    """States are forgotten and made again, up to a number of times; then another engine answers."""
    pattern = "q(?:a|b)*a(?:a|b){7}z"
    data = b" ".join(
        b"q" + "".join(random.Random(seed).choices("ab", k=60)).encode() + b"z" for seed in range(60)
    )
    want = reference.compile(pattern).spans(data)
    assert len(want) > 10
    monkeypatch.setattr(verify, "TABLE_BYTES_MAX", 4_000)
    for flushes_max, given_up in ((10_000, False), (8, True)):
        monkeypatch.setattr(verify, "FLUSHES_MAX", flushes_max)
        program: LlvmProgram = llvm.compile(pattern)
        assert program.spans(data) == want
        assert ("given_up" in program.explain()["texts"]) is given_up


def test_leftmost_first_is_only_scanned_where_it_is_the_same(llvm: LlvmQuery) -> None:
    assert llvm.compile("ab|abc", first=True).spans(b"xabc") == [(1, 3)]
    assert llvm.compile("ab|abc").spans(b"xabc") == [(1, 4)]
    assert llvm.compile("abc", first=True).spans(b"xabc") == [(1, 4)]


def test_wrong_arguments(llvm: LlvmQuery) -> None:
    program = llvm.compile("a")
    with pytest.raises(UsageError, match="limit"):
        program.spans(b"a", -1)
    for data in ("a", 5, np.zeros(3, np.uint8)):
        with pytest.raises(UsageError, match="bytes"):
            program.spans(data)  # type: ignore[arg-type]


HOSTILE = [
    "(?:(?:a{50}){50}){4}", "(?:a|a)*b", "(?:a*)*b", "(?:x+x+)+y", "[a-z]{1,300}!", "(?:(?:(?:a|b)*c)*d)*e",
    "(?:a?){60}a{60}", r"\xff\xfe|\udc80".replace(r"\udc80", "\udc80"), ".*.*.*=.*",
]  # fmt: skip


@pytest.mark.parametrize("pattern", HOSTILE)
def test_hostile_patterns(pattern: str, llvm: LlvmQuery, reference: ReferenceQuery) -> None:
    """Bounded by pattern times text, or refused by the name of a cap; never another answer."""
    rng = random.Random(3)
    data = text(rng, 400, "abcdexy=!") + b"a" * 300 + b"x" * 300 + b"\xff\xfe\x80"
    column = np.frombuffer(data[:960], np.uint8).reshape(-1, 8)
    program, law = llvm.compile(pattern), reference.compile(pattern)
    began = time.process_time()
    assert program.match(column).tolist() == law.match(column).tolist()
    assert program.spans(data) == law.spans(data)
    assert time.process_time() - began < 30


@pytest.mark.slow
def test_twenty_thousand_alternatives(llvm: LlvmQuery) -> None:
    rng = random.Random(4)
    names = sorted({"".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=4)) for _ in range(20_000)})
    program = llvm.compile("|".join(names))
    column = np.array([*names[::997], "AAA", "zzzzz"], "S8")
    want = [name.decode() in names for name in column.tolist()]
    assert program.match(column).tolist() == want
    assert program.explain()["other"] in ("dfa", "glushkov")
