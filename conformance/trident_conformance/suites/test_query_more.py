"""Query engines: leftmost-first spans, ends and sets, for those that declare them; refusals by name."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest

from trident_conformance import drive, patterns
from trident_conformance.engines import Engine
from trident_core.contracts import Capability, Explained
from trident_core.errors import PatternError, UsageError

#: Pattern, text, leftmost-first spans: what Perl, RE2 and Rust's regex say.
FIRST = [
    ("a|ab|abc", b"abcab", [(0, 1), (3, 4)]),
    ("(?:a|ab)(?:c|bcd)", b"abcd", [(0, 4)]),
    ("a+?", b"aaa", [(0, 1), (1, 2), (2, 3)]),
    ("a+?b", b"aab", [(0, 3)]),
    ("a*?", b"aa", [(0, 0), (1, 1), (2, 2)]),
    ("(?:|a)+", b"aaa", [(0, 0), (1, 1), (2, 2), (3, 3)]),
    ("(?:a|)+", b"aaab", [(0, 3), (4, 4)]),
    ("x??y|xy", b"xy", [(0, 2)]),
    ("a{1,3}?", b"aaaa", [(0, 1), (1, 2), (2, 3), (3, 4)]),
    ("(?m)^a??$", b"\na\n", [(0, 0), (1, 2), (3, 3)]),
    ("a.*b|a", b"aab a", [(0, 3), (4, 5)]),
]


@pytest.mark.needs_capability(Capability.FIRST)
class TestLeftmostFirst:
    @pytest.mark.parametrize(("pattern", "text", "spans"), FIRST, ids=[row[0] for row in FIRST])
    def test_vectors(self, query_engine: Engine, pattern: str, text: bytes, spans: Any) -> None:
        """QUERY-24: the branch and the count that come first in the pattern are preferred."""
        program = query_engine.make().compile(pattern, first=True)
        assert program.spans(text) == spans
        assert program.spans(text, 1) == spans[:1]

    def test_has_spans(self, query_engine: Engine) -> None:
        """QUERY-24: `first` is about spans, so SPANS is declared, too; without it they are the longest."""
        drive.equal("declares spans", query_engine.declares(Capability.SPANS), True)
        drive.equal("spans of a|ab", query_engine.make().compile("a|ab").spans(b"ab"), [(0, 2)])

    def test_as_python(self, query_engine: Engine, prove: Any) -> None:
        """QUERY-24: Python's re has the same preferences, where no loop may be empty."""
        texts = [bytes(t) for n in range(5) for t in itertools.product(b"abA", repeat=n)]

        def check(tree: Any) -> None:
            theirs = patterns.python(tree, "")
            program = query_engine.make().compile(patterns.ours(tree), first=True)
            for text in texts[::3]:
                found = theirs.search(text)
                assert program.spans(text, 1) == ([found.span()] if found else []), text

        prove(check, examples=200, tree=patterns.trees(anchors=False).filter(_loops_read))


def _loops_read(tree: Any) -> bool:
    """Whether no repeated part can be empty: engines differ on what an empty turn of a loop prefers."""
    match tree:
        case ("repeat", inner, _):
            return not patterns.python(inner, "").fullmatch(b"") and _loops_read(inner)
        case ("chain" | "choice", parts):
            return all(map(_loops_read, parts))
    return True


@pytest.mark.needs_capability(Capability.ENDS)
def test_ends(query_engine: Engine) -> None:
    """QUERY-25: every position at which some match ends, empty ones too, ascending; `limit` cuts."""
    engine = query_engine.make()
    assert engine.compile("a+b?").ends(b"aab a") == [1, 2, 3, 5]
    assert engine.compile("a*").ends(b"ba") == [0, 1, 2]
    assert engine.compile(r"\bab$").ends(b"ab ab") == [5]
    assert engine.compile("a").ends(b"aaaa", 2) == [1, 2]
    assert engine.compile("b").ends(b"") == []
    for pattern in ("a|bb", "(?:ab)+", "b*a", "(?m)^.|$"):
        program = engine.compile(pattern)
        anchored = engine.compile(pattern, full=True)
        for text in (bytes(t) for n in range(5) for t in itertools.product(b"ab", repeat=n)):
            if "m" not in pattern:
                wanted = [
                    end
                    for end in range(len(text) + 1)
                    if any(anchored.spans(text[start:end], 1) for start in range(end + 1))
                ]
                assert program.ends(text) == wanted, (pattern, text)
    with pytest.raises(UsageError):
        engine.compile("a").ends(b"a", -1)


@pytest.mark.needs_capability(Capability.SETS)
class TestSets:
    def test_bits(self, query_engine: Engine) -> None:
        """QUERY-26: bit i is what pattern i's own program answers, for up to 64 patterns."""
        engine = query_engine.make()
        wanted = ["^A", "A$", "B{2}", "^$", "(?i)msft", "[0-9]"] + [f"^X{number}$" for number in range(58)]
        column = np.array([b"A", b"ABBA", b"", b"Msft", b"X7", b"X57"], "S8")
        program = engine.compile_set(wanted)
        masks = program.match_set(column)
        assert masks.dtype == np.uint64
        assert program.patterns == tuple(wanted)
        for bit, pattern in enumerate(wanted):
            single = engine.compile(pattern).match(column)
            assert ((masks >> np.uint64(bit) & np.uint64(1)) == single).all(), pattern

    def test_how_many(self, query_engine: Engine) -> None:
        """QUERY-27: 1 to 64 patterns."""
        for wrong in ([], ["a"] * 65):
            with pytest.raises(UsageError):
                query_engine.make().compile_set(wrong)


def test_refusals_have_reasons(query_engine: Engine, quick: bool) -> None:
    """QUERY-28: a pattern of the dialect is answered rightly, or refused with a reason and an explanation."""
    column = np.array([b"a" * 61, b"b" * 61, b"a"])
    hard = [
        ("[ab]*a[ab]{60}", [True, False, False]),
        ("(?:a?){200}b{61}", [False, True, False]),
        ("(?:a{1000}){9}|^a$", [False, False, True]),  # engines may try for seconds before they refuse it
    ]
    for pattern, wanted in hard[: 2 if quick else 3]:
        try:
            found = query_engine.make().compile(pattern).match(column).tolist()
        except PatternError as error:
            drive.equal("pattern", error.pattern, pattern)
            drive.equal("has a reason", bool(error.reason), True)
        else:
            assert found == wanted, pattern


@pytest.mark.parametrize(
    ("pattern", "text", "shorter"),
    [
        ("^A{500}$", b"A" * 500, False),
        ("^(?:A{25}){20}$", b"A" * 500, False),
        ("^[AB]*A[AB]{7}$", b"B" * 40 + b"A" * 8, True),
        ("^(?:A?){60}B{60}$", b"A" * 7 + b"B" * 60, True),
        ("^(?:^{30}){30}A$", b"A", False),
        ("|".join(f"^{chr(65 + n % 26)}{n}$" for n in range(150)), b"F83", False),
    ],
    ids=["long", "nested", "subsets", "optional", "assertions", "branches"],
)
def test_what_every_engine_takes(query_engine: Engine, pattern: str, text: bytes, shorter: bool) -> None:
    """QUERY-29: 500 positions, 500 subsets, repeats of 900 multiplied; who hands over says so."""
    column = np.array([text, text[:-1] + b"Z", text[1:]])
    try:
        program = query_engine.make().compile(pattern)
        found = program.match(column).tolist()
    except PatternError as error:
        drive.equal(pattern, f"refused: {error}", "taken, if need be by ReferenceQuery")
    else:
        drive.equal(pattern, found, [True, False, shorter])
    if isinstance(program, Explained):
        told = json.loads(json.dumps(program.explain()))
        drive.equal("explain() names the engine at work", bool(told.get("engine")), True)
