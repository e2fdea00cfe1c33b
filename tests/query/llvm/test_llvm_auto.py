"""`auto` with inputs that are large enough for machine code: the counts of all engines, and who was asked."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from trident_query import auto
from trident_query.reference import ReferenceQuery

COLUMN = np.array([b"AAPL", b"MSFT", b"ZZ", b""] * 50, "S8")
TEXT = b" ".join(COLUMN.tolist())


@pytest.mark.parametrize("large", [False, True])
def test_counts(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LLVM_VALUES_MIN", "LLVM_TEXT_BYTES_MIN", "LLVM_CODES_MIN"):
        monkeypatch.setattr(auto, name, 1 if large else 10**9)
    program = auto.AutoQuery().compile("A.?P|Z")
    assert program.count(COLUMN) == program.match(COLUMN).sum() == 100
    assert program.count_spans(TEXT) == len(program.spans(TEXT)) == 150
    assert program.count_ends(TEXT) == len(program.ends(TEXT)) == 150
    codes = np.array([0, 1, 2, 3, 4, 65_535, 0], np.uint16)
    assert program.count_codes(codes, COLUMN[:4]) == 3
    asked = {what: why.partition(":")[0] for what, why in program.explain()["why"].items()}
    assert set(asked) == {"column", "spans", "ends"}
    assert (set(asked.values()) == {"llvm"}) is large


def asked(made: auto.AutoSet) -> list[str]:
    """The engines that answered, in the order of `ORDER`; each has a reason and an explanation."""
    told = made.explain()
    assert [each["engine"] for each in told["programs"]] == [
        name for name in auto.ORDER if name in told["why"]["set"]
    ]
    return sorted(told["why"]["set"])


@pytest.mark.parametrize(
    ("patterns", "engines"),
    [
        (["^AA", "P", "^Z+$"], ["glushkov", "dfa", "dfa", "llvm"]),
        # Sixty-four literals are one pass of tables, which beats eight functions.
        ([f"^A{number}$" for number in range(64)], ["glushkov", "dfa", "dfa", "dfa"]),
        # Products of these do not fit, so tables are many passes.
        ([f"{a}.*{b}" for a in "ABCDEF" for b in "PQRS"], ["glushkov", "dfa", "dfa", "llvm"]),
        # No table of the first fits, too many positions has the second.
        (["A.{30}P|Z.{14}Z", "B"], ["glushkov", "glushkov", "llvm", "llvm"]),
        (["A{1000}A{30}", "P"], ["dfa", "dfa", "dfa", "llvm"]),
    ],
)
def test_sets_by_how_many_values_were_asked(
    patterns: list[str], engines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All steps answer alike, and say why they answer."""
    for name, least in (("TABLE", 100), ("LLVM_BITS", 300), ("LLVM", 600)):
        monkeypatch.setattr(auto, f"{name}_SET_VALUES_MIN", least)
    patient = replace(auto.TABLE_LIMITS, seconds=100.0)  # whatever else runs on the machine
    monkeypatch.setattr(auto._engine("dfa"), "limits", patient)
    made = auto.AutoQuery().compile_set(patterns)
    wanted = ReferenceQuery().compile_set(patterns).match_set(COLUMN).tolist()
    seen: list[str] = []
    for part in (slice(0, 99), slice(50, 200), slice(0, 200), slice(0, 200)):
        made.chosen.clear()
        assert made.match_set(COLUMN[part]).tolist() == wanted[part]
        seen += asked(made)
        (why,) = made.explain()["why"]["set"].values()
        assert f"{made.values:,} values so far" in why
    assert seen == engines


def test_a_set_that_nothing_else_takes_goes_to_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "ORDER", ("reference",))
    auto._specs.cache_clear()
    try:
        made = auto.AutoQuery().compile_set(["A", "Z"])
        assert made.match_set(COLUMN[:4]).tolist() == [1, 0, 2, 0]
        assert asked(made) == ["reference"]
    finally:
        monkeypatch.undo()
        auto._specs.cache_clear()
