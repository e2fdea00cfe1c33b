"""Sets in machine code: every bit is what the reference says of the pattern alone."""

from __future__ import annotations

import numpy as np
import pytest

from trident_core.errors import PatternError, UsageError
from trident_query.llvm.engine import LlvmQuery
from trident_query.llvm.host import Host
from trident_query.reference import ReferenceQuery

PATTERNS = [
    "^A", "A$", "B{2}", "^$", "[A-C]D", "", r"\bA", "[^A]", "^[A-D]{3}$", "A|B|C", "(?i)d", "Z", "^AB?C*D",
    "AA+", r"A\z", "D.A", "^(?:AB|CD)+$", r"\Bb", "[ -~]",
]  # fmt: skip


def values(width: int, n: int = 300) -> np.ndarray:
    random = np.random.default_rng(width)
    raw = random.choice(np.frombuffer(b"AABCDb \0", np.uint8), (n, width))
    for row, length in zip(raw, random.integers(0, width + 1, n), strict=True):
        row[length:] = random.choice([0, 32])
    return raw


@pytest.mark.parametrize("width", [1, 3, 8, 11])
@pytest.mark.parametrize("raw", [False, True])
def test_every_bit_is_the_references(
    width: int, raw: bool, hosts: list[Host], reference: ReferenceQuery
) -> None:
    column = values(width)
    wanted = np.zeros(len(column), np.uint64)
    for bit, pattern in enumerate(PATTERNS):
        wanted |= reference.compile(pattern, raw=raw).match(column).astype(np.uint64) << np.uint64(bit)
    for host in hosts:
        made = LlvmQuery(host).compile_set(PATTERNS, raw=raw)
        assert made.patterns == tuple(PATTERNS)
        assert (made.match_set(column) == wanted).all()
        assert (made.match_set(column[::-3]) == wanted[::-3]).all()
        assert (made.match_set(column[:33]) == wanted[:33]).all()
        told = made.explain()["groups"]
        assert [len(group["patterns"]) for group in told] == [8, 8, 3]
        assert all(facts["engine"] == "circuit" for group in told for facts in group["columns"])
    assert made.match_set(column[:0]).shape == (0,)


def test_what_has_no_circuit_is_answered_one_by_one_and_said(
    llvm: LlvmQuery, reference: ReferenceQuery
) -> None:
    wanted = ["A{3}", "^B", "D$"]
    column = values(90)
    made = llvm.compile_set(wanted)
    masks = made.match_set(column)
    for bit, pattern in enumerate(wanted):
        single = reference.compile(pattern).match(column)
        assert ((masks >> np.uint64(bit) & np.uint64(1)) == single).all()
    (group,) = made.explain()["groups"]
    assert "circuits are for up to 64" in group["one by one"]
    assert [program["other"] for program in group["programs"]] == ["dfa"] * 3
    assert made.match_set(np.zeros((2, 0), np.uint8)).tolist() == [0, 0]


def test_what_is_no_set_is_refused(llvm: LlvmQuery) -> None:
    for wrong in ([], "AB", ["A"] * 65):
        with pytest.raises(UsageError):
            llvm.compile_set(wrong)
    with pytest.raises(PatternError):
        llvm.compile_set(["A", "(B"])
    with pytest.raises(UsageError):
        llvm.compile_set(["A"]).match_set(np.zeros(3))
