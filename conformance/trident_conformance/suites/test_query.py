"""Query engines against docs/dialect.md and docs/contracts/query.md; rules' ids (QUERY-n) with the tests."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from trident_conformance import drive, patterns, vectors
from trident_conformance.engines import Engine
from trident_conformance.evidence import given
from trident_core.contracts import Capability
from trident_core.errors import PatternError, UsageError

MATCHES = vectors.load("query_match")
SPANS = vectors.load("query_spans")
ERRORS = vectors.load("query_errors")


def compiled(engine: Engine, data: dict[str, Any]) -> Any:
    return engine.make().compile(
        data["pattern"],
        flags=data.get("flags", ""),
        full=data.get("full", False),
        raw=data.get("raw", False),
    )


@contextmanager
def taken(pattern: str) -> Iterator[None]:
    """Inside, a refusal of `pattern` is a failure in words: QUERY-29."""
    try:
        yield
    except PatternError as error:
        refusal = f"refused: {error}"
    else:
        return
    drive.equal(pattern, refusal, "taken, if need be by ReferenceQuery (QUERY-29)")


def columns(values: list[bytes], *, raw: bool) -> list[NDArray[Any]]:
    """The values as every kind of column: S[n] and u8[n, w], either padding, read-only, strided."""
    width = max([1, *map(len, values)])
    if raw:  # every byte counts, so values of one width stand alone
        return [c for v in values for c in _both(np.array([v], f"S{max(len(v), 1)}"), max(len(v), 1))]
    made = []
    for pad, extra in ((b"\0", 0), (b"\0", 3), (b" ", 0), (b" ", 5)):
        wide = width + extra
        made += _both(np.array([v.ljust(wide, pad) for v in values], f"S{wide}"), wide)
    return made


def _both(column: NDArray[Any], width: int) -> list[NDArray[Any]]:
    octets = column.view(np.uint8).reshape(len(column), width)
    wider = np.zeros((2 * len(column), width + 2), np.uint8)
    wider[::2, 1:-1] = octets
    column.flags.writeable = False
    return [column, octets, wider[::2, 1:-1]]


def answers(program: Any, values: list[bytes], *, raw: bool = False) -> list[bool]:
    """What a program says of the values, which must be the same for every kind of column."""
    given(pattern=program.pattern, values=values)
    found: list[list[bool]] = []
    kinds = columns(values, raw=raw)
    for column in kinds:
        before = column.tobytes()
        bitmap = program.match(column)
        assert bitmap.dtype == np.bool_
        assert bitmap.shape == (len(column),)
        assert column.tobytes() == before, "match wrote to the column"
        found.append(bitmap.tolist())
    if raw:
        assert found[::3] == found[1::3] == found[2::3], "S[n] and u8[n, w] disagree"
        return [answer[0] for answer in found[::3]]
    assert all(answer == found[0] for answer in found), "S[n] and u8[n, w], or two paddings, disagree"
    return found[0]


class TestVectors:
    @pytest.mark.parametrize("vector", MATCHES, ids=[v.label for v in MATCHES])
    def test_match(self, query_engine: Engine, vector: vectors.Vector) -> None:
        """QUERY-1, 4, 5, 10, 11, 12, 14: the dialect, one vector for each construct."""
        with taken(vector.data["pattern"]):
            program = compiled(query_engine, vector.data)
        yes = [value.encode("latin-1") for value in vector.data["yes"]]
        no = [value.encode("latin-1") for value in vector.data["no"]]
        with taken(vector.data["pattern"]):
            found = answers(program, yes + no, raw=vector.data.get("raw", False))
        expected = [True] * len(yes) + [False] * len(no)
        wrong = [value for value, a, b in zip(yes + no, found, expected, strict=True) if a != b]
        assert not wrong, f"{vector.data['pattern']!r}: wrong answer for {wrong}"
        assert program.pattern == vector.data["pattern"]

    @pytest.mark.needs_capability(Capability.SPANS)
    @pytest.mark.parametrize("vector", SPANS, ids=[v.label for v in SPANS])
    def test_spans(self, query_engine: Engine, vector: vectors.Vector) -> None:
        """QUERY-20 to 22."""
        with taken(vector.data["pattern"]):
            program = compiled(query_engine, vector.data)
        data = vector.data["data"].encode("latin-1")
        found = program.spans(data, vector.data["limit"]) if "limit" in vector.data else program.spans(data)
        assert [list(span) for span in found] == vector.data["spans"]

    @pytest.mark.parametrize("vector", ERRORS, ids=[v.label for v in ERRORS])
    def test_refused(self, query_engine: Engine, vector: vectors.Vector) -> None:
        """QUERY-2: PatternError, at the byte offset of what is refused."""
        with pytest.raises(PatternError) as caught:
            compiled(query_engine, vector.data)
        assert caught.value.position == vector.data["position"]
        assert caught.value.pattern == vector.data["pattern"]


class TestAnyPattern:
    #: All texts of up to four bytes over a small alphabet: what two engines disagree on is mostly short.
    TEXTS = [bytes(t) for n in range(5) for t in itertools.product(b"abA", repeat=n)] + [
        b"a\nb",
        b"\n",
        b"b\na\n",
    ]

    def test_match_as_python(self, query_engine: Engine, prove: Any) -> None:
        """QUERY-1, 4, 11: the matching set is that of Python's re, on what both dialects have."""

        def check(tree: patterns.Tree, flags: str, full: bool) -> None:
            with taken(patterns.ours(tree)):
                program = query_engine.make().compile(patterns.ours(tree), flags=flags, full=full)
            law = patterns.python(tree, flags)
            ask = law.fullmatch if full else law.search
            texts = [text for text in self.TEXTS if text == text.rstrip(b" \0")]
            column = np.array(texts, "S5")
            found = program.match(column).tolist()
            expected = [ask(text) is not None for text in texts]
            wrong = [text for text, a, b in zip(texts, found, expected, strict=True) if a != b]
            assert not wrong, f"{patterns.ours(tree)!r} flags {flags!r} full {full}: {wrong[:5]}"

        flags = st.sampled_from(["", "i", "s", "m", "ims"])
        prove(check, examples=300, tree=patterns.trees(anchors=True), flags=flags, full=st.booleans())

    @pytest.mark.needs_capability(Capability.SPANS)
    def test_spans_as_by_hand(self, query_engine: Engine, prove: Any) -> None:
        """QUERY-20, 21: against every substring asked one by one, longest first."""

        def check(tree: patterns.Tree, text: bytes, limit: int) -> None:
            with taken(patterns.ours(tree)):
                program = query_engine.make().compile(patterns.ours(tree))
            expected = patterns.spans(patterns.python(tree, ""), text)
            assert [tuple(s) for s in program.spans(text)] == expected, patterns.ours(tree)
            assert [tuple(s) for s in program.spans(text, limit)] == expected[: limit or None]

        text = st.text("abcA\n", max_size=14).map(str.encode)
        trees = patterns.trees(anchors=False)
        prove(check, examples=300, tree=trees, text=text, limit=st.integers(0, 3))

    def test_any_string_compiles_or_is_refused(self, query_engine: Engine, prove: Any) -> None:
        """QUERY-1, 2, 30: no other error, whatever the pattern; an offset within the pattern."""

        def check(pattern: str) -> None:
            try:
                query_engine.make().compile(pattern).match(np.array([b"abc"]))
            except PatternError as error:
                at = error.position
            else:
                at = 0
            assert 0 <= at <= len(pattern.encode())

        prove(check, examples=300, pattern=st.text("ab(|)*+?{}[]^$\\.,-:12xdwP<>=!i\né", max_size=14))

    @pytest.mark.needs_capability(Capability.SPANS)
    @pytest.mark.parametrize("edge", [4_096, 65_536])
    def test_spans_over_the_edges_of_blocks(self, query_engine: Engine, edge: int) -> None:
        """QUERY-22, 23: matches at and over the places where an engine may cut a long text."""
        places = sorted({at + d for at in range(0, 3 * edge + 1, edge // 2) for d in (-17, -3, 0, 2)})
        text = bytearray(b"x" * (3 * edge))
        for at in places:
            if 0 <= at <= len(text) - 5:
                text[at : at + 5] = b"ABBBC"
        data = bytes(text)
        for pattern, law in (("AB+C", rb"AB+C"), ("^x|C$", rb"\Ax|C\Z"), (r"BB|\bx{3}", rb"BB|\bx{3}")):
            found = [tuple(span) for span in query_engine.make().compile(pattern).spans(data)]
            assert found == [match.span() for match in re.finditer(law, data)], pattern


class TestPrograms:
    def test_asked_twice(self, query_engine: Engine) -> None:
        """QUERY-6: the answer does not depend on what was asked before."""
        with taken("^(?:AB|C)+$"):
            program = query_engine.make().compile("^(?:AB|C)+$")
        first, second = np.array([b"AB", b"CAB", b"X"]), np.array([b"C" * 40, b"A" * 40])
        assert program.match(first).tolist() == [True, True, False]
        assert program.match(second).tolist() == [True, False]
        assert program.match(first).tolist() == [True, True, False]

    def test_many_values(self, query_engine: Engine) -> None:
        """QUERY-10: a column longer than any block or vector of an engine, at every remainder."""
        with taken("^[A-M].*[02468]$"):
            program = query_engine.make().compile("^[A-M].*[02468]$")
        values = [f"{chr(65 + i % 26)}{i}".encode() for i in range(3_001)]
        expected = [v[:1] <= b"M" and int(v[1:]) % 2 == 0 for v in values]
        for n in (1, 2, 31, 32, 33, 63, 64, 65, 127, 3_001):
            assert program.match(np.array(values[:n], "S8")).tolist() == expected[:n]
            assert program.match(np.array(values[-n:], "S8")).tolist() == expected[-n:]

    @pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8, 9, 16, 31, 33, 64, 200])
    def test_any_width(self, query_engine: Engine, width: int) -> None:
        """QUERY-10."""
        program = query_engine.make().compile("^A*$")
        values = [b"A" * k for k in range(width + 1)] + [b"A" * (width - 1) + b"B"]
        assert answers(program, values) == [True] * (width + 1) + [False]

    def test_columns_of_nothing(self, query_engine: Engine) -> None:
        """QUERY-10: no rows, and rows of no bytes."""
        program = query_engine.make().compile("^$")
        assert program.match(np.zeros(0, "S8")).tolist() == []
        assert program.match(np.zeros((0, 8), np.uint8)).tolist() == []
        assert program.match(np.zeros((3, 0), np.uint8)).tolist() == [True, True, True]

    @pytest.mark.parametrize(
        "column",
        [np.zeros(3, np.uint8), np.zeros((2, 2, 2), np.uint8), np.zeros((2, 2), "S2"), np.zeros(3, "U3"),
         np.zeros((3, 4), np.int8), np.zeros(3)],
        ids=["u8-1d", "u8-3d", "S-2d", "text", "i8", "floats"],
    )  # fmt: skip
    def test_wrong_columns(self, query_engine: Engine, column: Any) -> None:
        """QUERY-13."""
        with pytest.raises(UsageError):
            query_engine.make().compile("A").match(column)

    def test_wrong_questions(self, query_engine: Engine) -> None:
        """QUERY-3."""
        with pytest.raises(UsageError):
            query_engine.make().compile("A", flags="q")
        with pytest.raises(UsageError):
            query_engine.make().compile(b"A")

    @pytest.mark.needs_capability(Capability.SPANS)
    def test_wrong_limit(self, query_engine: Engine) -> None:
        """QUERY-21."""
        with pytest.raises(UsageError):
            query_engine.make().compile("A").spans(b"A", -1)

    def test_nothing_backtracks(self, query_engine: Engine) -> None:
        """QUERY-29, 30: patterns that take a backtracking engine longer than the sun will shine."""
        for pattern, text in (
            ("^(?:a?){40}a{40}$", b"a" * 40),
            ("^(?:a|a)*b", b"a" * 60),
            ("^(?:a*)*b$", b"a" * 60),
        ):
            expected = pattern.startswith("^(?:a?)")
            with taken(pattern):
                found = query_engine.make().compile(pattern).match(np.array([text])).tolist()
            drive.equal(pattern, found, [expected])

    def test_many_symbols(self, query_engine: Engine) -> None:
        """QUERY-29: an alternation of thousands of symbols is a pattern like any other."""
        names = ["".join(name) for name in itertools.islice(itertools.product("ABCDEFGHIJ", repeat=4), 2_000)]
        column = np.array([name.encode() for name in names[:300]], "S8")
        with taken("^(?:AAAA|AAAC|AAAE|…)$ of 1,000 symbols"):
            program = query_engine.make().compile(f"^(?:{'|'.join(map(re.escape, names[::2]))})$")
            found = program.match(column).tolist()
        assert found == [True, False] * 150
