"""Circuits over columns: the same answers as the reference, whatever the width, the layout and the CPU."""

from __future__ import annotations

import dataclasses
import itertools
import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trident_core.errors import UsageError
from trident_query.llvm.engine import LlvmQuery
from trident_query.llvm.host import Host
from trident_query.reference import ReferenceQuery

#: Each shows another part: literals, classes of every form, loops, ends, neighbours, constants.
PATTERNS = [
    ("^AA", ""), ("^A[AB]* *$", ""), ("(?:A|BB)Z", ""), (r"\bA+\b", ""), ("B$", ""), ("^A$", "m"), ("^$", ""),
    ("", ""), ("[^A]B|Z A", ""), (r"\B", ""), ("x", ""), ("A.*B", ""), ("a.b", "is"), (r"(?:A\b.)+", "s"),
    (r"\x00", ""), (r"[ \x00]B", ""), (r"\B\B", ""), ("(?:A|B|Z){2}$", ""), (r"[\x00-\x20A]Z", ""),
    ("[AQX_]|[^!-~]", ""), (r"A\z|^\n", "m"), ("(?:^|B)Z(?:$|A)", ""), ("[[:punct:]]|AA", ""),
]  # fmt: skip
ALPHABET = b"AABBZaz \n\0_"


def rows(count: int, width: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return rng.choice(np.frombuffer(ALPHABET, np.uint8), (count, width))


def same(got: np.ndarray, want: np.ndarray, column: np.ndarray) -> None:
    wrong = np.flatnonzero(got != want)
    assert not len(wrong), [(i, column[i].tobytes(), bool(got[i])) for i in wrong[:5].tolist()]


@pytest.mark.parametrize("width", [1, 2, 3, 4, 5, 7, 8, 11, 16, pytest.param(33, marks=pytest.mark.slow)])
def test_every_width(width: int, hosts: list[Host], reference: ReferenceQuery) -> None:
    column = rows(333, width, width)
    chosen = PATTERNS if width in (4, 8) else random.Random(width).sample(PATTERNS, 6)
    for number, (pattern, flags) in enumerate(chosen):
        raw = bool(number % 2)
        want = reference.compile(pattern, flags=flags, raw=raw).match(column)
        for host in hosts:
            program = LlvmQuery(host).compile(pattern, flags=flags, raw=raw)
            same(program.match(column), want, column)
            assert program.explain()["columns"][0]["engine"] == "circuit"


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 31, 32, 33, 64, 95])
def test_every_count_and_every_form_of_answer(
    count: int, hosts: list[Host], reference: ReferenceQuery
) -> None:
    column = rows(count, 8, count)
    want = reference.compile("A.*B|Z").match(column)
    for host in hosts:
        program = LlvmQuery(host).compile("A.*B|Z")
        same(program.match(column), want, column)
        assert program.count(column) == want.sum()
        assert program.bitmap(column).tobytes() == np.packbits(want, bitorder="little").tobytes()


def test_layouts(llvm: LlvmQuery, reference: ReferenceQuery) -> None:
    """Fields of records, every other value, backwards, one value many times, read-only, S and u8."""
    wide = rows(200, 24, 1)
    wide.flags.writeable = False
    record = wide.view(np.dtype({"names": ["s"], "formats": ["S5"], "offsets": [9], "itemsize": 24}))[:, 0]
    layouts = [
        wide[:, 3:11], wide[::2, 3:11], wide[::-1, 3:11], wide[:, 3:11][:, ::-1], record["s"],
        record["s"][::-3],
        np.broadcast_to(np.array(b"AB B", "S8"), 100), np.ascontiguousarray(wide[:, :8]).view("S8")[:, 0],
        np.zeros((5, 0), np.uint8), np.array([b"A"], "S8"), wide[:1, :8],
    ]  # fmt: skip
    for pattern in ("^A.*B", "B *$", ""):
        program, law = llvm.compile(pattern), reference.compile(pattern)
        for column in layouts:
            same(program.match(column), law.match(column), column)


def test_nothing_behind_the_column_is_read(memory_end: Callable[[bytes], Any], hosts: list[Host]) -> None:
    """The column ends where memory does; so does each value, with strides, too."""
    for width, count in itertools.product((1, 3, 4, 6, 8, 11), (1, 31, 32, 70)):
        data = (b"ABZ " * width * count)[: width * count]
        column = memory_end(data).reshape(count, width)
        copied = column.copy()
        spread = memory_end(bytes(2 * width * count - width) if count > 1 else bytes(width))
        strided = np.lib.stride_tricks.as_strided(spread, (count, width), (2 * width, 1))
        for host in hosts:
            program = LlvmQuery(host).compile("A.?B")
            same(program.match(column), program.match(copied), column)
            assert not program.match(strided).any()


def test_nothing_beside_the_answer_is_written(hosts: list[Host]) -> None:
    for host, count in itertools.product(hosts, (1, 9, 31, 32, 40)):
        columns = LlvmQuery(host).compile("A")._columns
        from trident_query.llvm.columns import layout_of

        column = rows(count, 8, 5)
        bits, bools = np.full(100, 0xEE, np.uint8), np.full(100, 0xEE, np.uint8)
        columns.run(layout_of(column), bits, bools.view(np.bool_))
        assert (bits[-(-count // 8) :] == 0xEE).all()
        assert (bools[count:] == 0xEE).all()


def exhaustive(atoms: str, length: int) -> list[str]:
    """All well-formed patterns of up to `length` of these pieces (and a few of each quantifier)."""
    made = []
    pieces = [*atoms, "a*", "b?", "(?:ab|b)*", "$", "^", r"\b", "|"]
    for n in range(1, length + 1):
        made += ["".join(chosen) for chosen in itertools.product(pieces, repeat=n)]
    return made


def all_texts(alphabet: bytes, width: int) -> np.ndarray:
    return np.array([list(text) for text in itertools.product(alphabet, repeat=width)], np.uint8)


def check_exhaustive(patterns: list[str], llvm: LlvmQuery, reference: ReferenceQuery) -> None:
    column = all_texts(b"ab \0", 4)
    for pattern in patterns:
        for raw in (False, True):
            want = reference.compile(pattern, raw=raw).match(column)
            same(llvm.compile(pattern, raw=raw).match(column), want, column)


def test_all_small_patterns_on_all_small_texts(llvm: LlvmQuery, reference: ReferenceQuery) -> None:
    """A sample of them; test_all_small_patterns_slow takes more."""
    check_exhaustive(random.Random(7).sample(exhaustive("ab. ", 3), 60), llvm, reference)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
def test_all_small_patterns_slow(llvm: LlvmQuery, reference: ReferenceQuery) -> None:
    pieces = int(os.environ.get("TRIDENT_EXHAUSTIVE_PIECES", "2"))  # 3: 1,884 patterns, two to three minutes
    check_exhaustive(exhaustive("ab. ", pieces), llvm, reference)
    check_exhaustive(random.Random(8).sample(exhaustive("ab. ", 4), 200), llvm, reference)


ATOM = st.sampled_from(["A", "B", "[AB]", "[^A]", ".", "Z", " ", r"\b", r"\B", "^", "$", r"\w", r"[\x00 ]"])


def patterns() -> st.SearchStrategy[str]:
    def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        grouped = inner.map(lambda p: f"(?:{p})")
        return st.one_of(
            st.lists(inner, min_size=2, max_size=3).map("".join),
            st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
            st.tuples(grouped, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{2,}"])).map("".join),
        )

    return st.recursive(ATOM, extend, max_leaves=8)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=patterns(), flags=st.sampled_from(["", "i", "m", "s"]), data=st.data())
def test_any_pattern(pattern: str, flags: str, data: Any, llvm: LlvmQuery, reference: ReferenceQuery) -> None:
    width = data.draw(st.sampled_from([3, 4, 8]))
    column = rows(150, width, data.draw(st.integers(0, 9)))
    full, raw = data.draw(st.booleans()), data.draw(st.booleans())
    want = reference.compile(pattern, flags=flags, full=full, raw=raw).match(column)
    same(llvm.compile(pattern, flags=flags, full=full, raw=raw).match(column), want, column)


def test_circuits_stay_small_where_states_explode(llvm: LlvmQuery) -> None:
    """`[AB]` seven from the end needs 2^7 states of a DFA, and a few dozen operations here."""
    program = llvm.compile("^[A-Z]*[AB][A-Z]{6} *$")
    program.match(rows(32, 8, 1))
    assert program.explain()["columns"][0]["operations"] < 200


def test_what_is_too_large_is_refused_by_name_and_still_answered(
    llvm: LlvmQuery, reference: ReferenceQuery
) -> None:
    from trident_query.llvm.columns import layout_of

    rng = random.Random(1)
    names = ["".join(rng.choices("ABCDEFGHIJ", k=6)) for _ in range(1_500)]
    many = llvm.compile("|".join(names))
    wide, column = llvm.compile("A"), rows(10, 65, 1)
    for program, values, cap in [(wide, column, "width"), (many, np.array(names[:50], "S8"), "steps")]:
        from trident_query.llvm.code import RefusedError

        with pytest.raises(RefusedError) as refused:
            program._columns.run(layout_of(values))
        assert refused.value.cap == cap
        same(program.match(values), reference.compile(program.pattern).match(values), values)
        facts = program.explain()["columns"][0]
        assert (facts["engine"], facts["why"]) == ("other", refused.value.message)


def test_a_column_of_another_type_is_refused(llvm: LlvmQuery) -> None:
    program = llvm.compile("A")
    for column in (np.zeros(3), np.zeros((2, 2, 2), np.uint8), ["A"], np.array(["A"])):
        with pytest.raises(UsageError, match="a column is"):
            program.match(column)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_codes_of_a_dictionary(dtype: Any, llvm: LlvmQuery) -> None:
    """Each code as its value; a code behind the last value does not match, whatever the pattern."""
    values = rows(200, 8, 3)
    for count in (0, 1, 7, 8, 9, 100):
        codes = np.random.default_rng(count).integers(0, 256, count).astype(dtype)
        for pattern in ("A.*B", ""):
            program = llvm.compile(pattern)
            want = np.append(program.match(values), np.zeros(56, np.bool_))[codes]
            assert program.match_codes(codes, values).tolist() == want.tolist()
            assert program.count_codes(codes, values) == want.sum()
    far = np.array([2**32 - 1, 200, 199], np.uint32)
    assert llvm.compile("").match_codes(far, values).tolist() == [False, False, True]
    with pytest.raises(UsageError, match="codes are"):
        llvm.compile("A").match_codes(np.zeros(3, np.int64), values)


def test_tables_by_nibble_on_narrow_vectors(hosts: list[Host], reference: ReferenceQuery) -> None:
    """A CPU with SSSE3 and no AVX2: `pshufb` of 16 bytes, for columns and for texts."""
    host = dataclasses.replace(hosts[1], shuffles=hosts[0].shuffles)
    ragged = "[ACEGIKMOQSUWY13579_]{2}[^bdfhjlnprtvxz!#%&]"
    names = "|".join(a + b + c for a in "ABCD" for b in "EFGH" for c in "IJKL")
    column = np.random.default_rng(1).integers(0, 128, (2_000, 8)).astype(np.uint8)
    for pattern in (ragged, names):
        program, law = LlvmQuery(host).compile(pattern), reference.compile(pattern)
        same(program.match(column), law.match(column), column)
        data = column.tobytes() + b"AEI DHL"
        assert program.spans(data) == law.spans(data)
