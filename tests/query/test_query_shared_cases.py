"""Every case that authors of other engines made and that the dialect can be judged by (docs/dialect.md).

The judge is `trident_conformance.regex`; here it is held to counts, so that neither the front end nor the
judge can hollow out unseen. The reference is asked all cases; the other engines a part, and all in the slow
run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trident_conformance import regex
from trident_conformance.engines import select
from trident_core.contracts import Capability, Kind
from trident_core.errors import PatternError
from trident_query.reference import ReferenceQuery

pytestmark = pytest.mark.shared

#: At least so many cases of each source must pass (all that could, when this was written).
FLOORS = {
    "hyperscan": 5_980,
    "re2-search": 3_960,
    "pcre2": 600,
    "rust-regex": 450,
    "regex-tdfa": 240,
    "att-dat": 204,
    "resharp": 126,
    "go-find": 31,
}
OTHERS = [e.name for e in select(Kind.QUERY) if e.name != "reference" and not e.missing]


@pytest.fixture(scope="module")
def cases(shared: Callable[..., Path]) -> list[dict[str, Any]]:
    return regex.load(shared("cases", "regex", "cases.jsonl"))


def judged(cases: list[dict[str, Any]], name: str, capsys: pytest.CaptureFixture[str]) -> regex.Verdict:
    verdict = regex.judge(cases, select(Kind.QUERY, [name])[0])
    with capsys.disabled():
        print(
            f"\n{name}: {verdict.cases:,} cases, {verdict.passed.total():,} passed, "
            f"{verdict.refused.total():,} refused by name, {len(verdict.failures):,} failed, "
            f"{verdict.not_judged.total():,} not judged"
        )
    assert not verdict.failures, "\n".join(verdict.failures[:20])
    assert verdict.complete()
    return verdict


def test_the_reference_on_all_cases(cases: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]) -> None:
    verdict = judged(cases, "reference", capsys)
    short = {source: verdict.passed[source] for source, n in FLOORS.items() if verdict.passed[source] < n}
    assert not short, f"fewer cases passed than there were: {short}"
    unused = [name for name in regex.REFUSALS.values() if f"dialect: {name}" not in verdict.refused]
    assert not unused, f"differences that no case shows: {unused}"
    assert not [name for name in verdict.refused if name.startswith("engine")]


@pytest.mark.parametrize("name", OTHERS)
def test_other_engines_on_a_part(
    cases: list[dict[str, Any]], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    verdict = judged(cases[7::240], name, capsys)
    assert verdict.passed.total() >= 20


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", [name for name in OTHERS if name != "auto"])
def test_other_engines_on_more(
    cases: list[dict[str, Any]], name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """All of them, by a command: `python -m trident_conformance regex CASES --engine NAME`."""
    verdict = judged(cases[3::60], name, capsys)
    assert verdict.passed.total() >= 80


def test_a_wrong_engine_fails(cases: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The judge can fail: an engine whose spans are one too long, or that refuses without a name."""
    engine = select(Kind.QUERY, ["reference"])[0]
    program = type(ReferenceQuery().compile("a"))
    spans = program.spans
    monkeypatch.setattr(
        program, "spans", lambda self, data, limit=0: [(s, e + 1) for s, e in spans(self, data, limit)]
    )
    part = [case for case in cases if case["source"] == "att-dat" and case["expect"]["spans"]][:40]
    assert len(regex.judge(part, engine).failures) == len(part)

    def refuse(self: Any, pattern: str, **options: Any) -> None:
        raise PatternError("no", pattern=pattern, position=0)

    monkeypatch.setattr(ReferenceQuery, "compile", refuse)
    assert len(regex.judge(part, engine).failures) == len(part)


#: Patterns of negatives.jsonl that this dialect has, and why it may.
ACCEPTED_NEGATIVES = {
    r"\b-?[1-9](?:\.\d+)?[Ee][-+]?\d+\b": "word boundaries may stand anywhere",
    r"a\b.*\bb": "word boundaries may stand anywhere",
    r"(?i)(\btest\b.*\blong\b|\blong\b.*\btest\b)": "word boundaries may stand anywhere",
    r"\w*\b\s": "word boundaries may stand anywhere",
    r"(a|\bb)": "word boundaries may stand anywhere",
    r"^.*(a|^b)": "anchors may stand anywhere",
    r".*(a|^b)": "anchors may stand anywhere",
    r"((((((((((x{2}){2}){2}){2}){2}){2}){2}){2}){2}){2})": "the cap is on states, not on products of counts",
}


def test_the_negatives(shared: Callable[..., Path]) -> None:
    lines = shared("cases", "regex", "negatives.jsonl").read_text(encoding="utf-8").splitlines()
    for spec in select(Kind.QUERY):
        if spec.missing or not spec.declares(Capability.SPANS):
            continue
        engine, refused, accepted = spec.make(), [], set()
        for line in lines:
            pattern = json.loads(line)["pattern"]
            try:
                engine.compile(pattern)
                accepted.add(pattern)
            except PatternError as error:
                refused.append((pattern, error))
        missing = set(ACCEPTED_NEGATIVES) - accepted
        assert accepted | missing == set(ACCEPTED_NEGATIVES), spec.name
        assert not missing or spec.name == "re2"  # which refuses products of counts
        assert len(refused) >= len(lines) - len(ACCEPTED_NEGATIVES) >= 58
        assert all(0 <= error.position <= len(pattern.encode()) for pattern, error in refused)
