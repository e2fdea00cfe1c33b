"""Every case that authors of other engines made and that the dialect can be judged by (docs/dialect.md).

Each case is either judged or excluded for a reason that is written down here; the counts are asserted, so
that neither the front end nor this test can hollow out unseen.
"""

from __future__ import annotations

import base64
import functools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from trident_core.errors import PatternError
from trident_query.reference import ReferenceProgram, ReferenceQuery

pytestmark = pytest.mark.shared

Case = dict[str, Any]
Spans = list[tuple[int, int]]

#: Why the front end refuses a pattern of another dialect: its error -> the difference. No other is allowed.
REFUSALS = {
    r"unknown flag '[uUR]'": "flags u, U, R",
    r"an extended class \(\?\[": "Perl's extended classes (?[…])",
    r"\\[QE] \(quoting\)": "quoting with \\Q…\\E",
    r"\\V \(": "PCRE's \\V",
    r"\\e \(": "PCRE's \\e",
    r"\\c \(": "control escapes \\cX",
    r"\\b is an assertion, not a byte": "[\\b] as a backspace",
    r"\\x needs hexadecimal digits": "\\x with fewer than two digits",
    r"a range must end in single bytes": "a class as the end of a range",
    r"repeats of one item": "repeat counts above 1,000",
    r"not a POSIX class": "[: that is no POSIX class",
    r"\{ does not start a repeat": "{ as a literal",
    r"is 2 bytes, and a class holds single bytes": "non-ASCII characters in a class",
}

#: At least so many cases of each source must be judged (all that could be, when this was written).
FLOORS = {
    "hyperscan": 5_988,
    "re2-search": 3_964,
    "pcre2": 606,
    "rust-regex": 442,
    "regex-tdfa": 240,
    "att-dat": 204,
    "resharp": 126,
    "go-find": 31,
}


@pytest.fixture(scope="module")
def cases(shared: Callable[..., Path]) -> list[Case]:
    path = shared("cases", "regex", "cases.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def exclusion(case: Case) -> str | None:
    """Why a case cannot be judged whatever the engine does, or None."""
    if "line_terminator" in case:
        return "line terminators other than LF"
    if "bounds" in case:
        return "searches of a part of a text"
    if case.get("set") and case["semantics"] != "all":
        return "leftmost-first choice among several patterns"
    if case["search"] == "overlapping" and case["semantics"] == "leftmost-first":
        return "overlapping leftmost-first matches"
    if case["search"] == "leftmost" and case["semantics"] == "all":
        return "match kind all without a leftmost rule"
    return None


def final_newline(case: Case, data: bytes, program: ReferenceProgram) -> str | None:
    """PCRE and Hyperscan treat a newline at the very end apart; if that explains a difference, the reason."""
    if case["source"] not in ("hyperscan", "pcre2") or not data.endswith(b"\n"):
        return None
    if "ends" in case["expect"]:
        differences = set(case["expect"]["ends"]) ^ set(program.simulation.ends(data))
        if not differences <= {len(data) - 1, len(data)}:
            return None
    multiline = "m" in case["flags"]
    if not multiline and "$" in case["pattern"]:
        return "$ before a final newline, without flag m"
    if multiline and "^" in case["pattern"]:
        return "no ^ after a final newline, with flag m"
    return None


def test_the_cases(cases: list[Case], engine: ReferenceQuery, capsys: pytest.CaptureFixture[str]) -> None:
    judged: Counter[str] = Counter()
    exact: Counter[str] = Counter()
    excluded: Counter[str] = Counter()
    failures: list[str] = []

    @functools.cache
    def compiled(pattern: str, flags: str, full: bool) -> ReferenceProgram | PatternError:
        try:
            return engine.compile(pattern, flags=flags, full=full)
        except PatternError as error:
            return error

    for case in cases:
        data = base64.b64decode(case["haystack"])
        reason = exclusion(case)
        if reason:
            excluded[reason] += 1
            continue
        try:
            verdict = judge(case, data, compiled)
        except PatternError as error:
            why = [text for regex, text in REFUSALS.items() if re.search(regex, error.reason)]
            if why:
                excluded[f"refused: {why[0]}"] += 1
            else:
                failures.append(f"{case['id']}: {error}")
            continue
        if verdict not in ("exact", "start"):
            reason = final_newline(case, data, engine.compile(case["pattern"], flags=case["flags"]))
            if reason:
                excluded[reason] += 1
                continue
        judged[case["source"]] += 1
        exact[case["source"]] += verdict == "exact"
        if verdict not in ("exact", "start"):
            failures.append(f"{case['id']}: {case['pattern']!r} on {data!r}: {verdict}")

    with capsys.disabled():
        print(f"\nshared regex cases: {judged.total():,} judged of {len(cases):,}, {len(failures)} failed")
        for source, count in judged.most_common():
            print(f"  {count:6,}  {source} ({exact[source]:,} exactly, the rest by start and existence)")
        for text, count in excluded.most_common():
            print(f"  {count:6,}  excluded: {text}")
    assert not failures, "\n".join(failures[:20])
    short = {source: judged[source] for source, floor in FLOORS.items() if judged[source] < floor}
    assert not short, f"fewer cases judged than there were: {short}"
    unused = [text for text in REFUSALS.values() if f"refused: {text}" not in excluded]
    assert not unused, f"differences that no case shows: {unused}"
    assert judged.total() + excluded.total() == len(cases)


Compiled = Callable[[str, str, bool], ReferenceProgram | PatternError]


def judge(case: Case, data: bytes, compiled: Compiled) -> str:
    """ "exact", "start" (leftmost-first differs from longest as it may), or what is wrong."""

    def program(pattern: str) -> ReferenceProgram:
        found = compiled(pattern, case["flags"], bool(case.get("fullmatch")))
        if isinstance(found, PatternError):
            raise found
        return found

    expect = case["expect"]
    if "matches" in expect:
        ends = defaultdict(set)
        for number, _, end in expect["matches"]:
            ends[number].add(end)
        for number, pattern in enumerate(case["pattern"]):
            if set(program(pattern).simulation.ends(data)) != ends[number]:
                return f"pattern {number}: not the ends {sorted(ends[number])}"
        return "exact"
    pattern = case["pattern"]
    if case["anchored"]:
        # Anchored iteration is not in the contract; its first step is a search behind \A.
        return judge_first(program(f"\\A(?:{pattern})").spans(data, 1), first_of(expect["spans"]))
    if "ends" in expect or case["search"] == "overlapping":
        wanted = expect["ends"] if "ends" in expect else sorted({end for _, end in expect["spans"]})
        got = list(program(pattern).simulation.ends(data))
        return "exact" if got == wanted else f"ends {got}, not {wanted}"
    if "match" in expect:
        return "exact" if bool(program(pattern).spans(data, 1)) == expect["match"] else "wrong existence"
    if case["search"] == "earliest":
        wanted_first = [end for _, end in expect["spans"][:1]]
        got_first = list(program(pattern).simulation.ends(data))[:1]
        return "exact" if got_first == wanted_first else f"first end {got_first}, not {wanted_first}"
    wanted_spans = [(start, end) for start, end in expect["spans"]]
    if case.get("iter") == "python":
        wanted_spans = list(without_abutting(wanted_spans))
    got_spans = program(pattern).spans(data, case.get("limit", 0))
    if case["semantics"] == "leftmost-longest":
        return "exact" if got_spans == wanted_spans else f"spans {got_spans}, not {wanted_spans}"
    return "exact" if got_spans == wanted_spans else judge_first(got_spans, first_of(wanted_spans))


def first_of(spans: list[Any]) -> Spans:
    return [(start, end) for start, end in spans[:1]]


def judge_first(got: Spans, wanted: Spans) -> str:
    """Leftmost-first and leftmost-longest agree on existence and start; the longest is never the shorter."""
    if got[:1] == wanted:
        return "exact"
    if got and wanted and got[0][0] == wanted[0][0] and got[0][1] > wanted[0][1]:
        return "start"
    return f"first span {got[:1]}, not {wanted}"


def without_abutting(spans: Spans) -> Iterator[tuple[int, int]]:
    """Python gives an empty match at the end of the match before it; here, as in Go and Rust, not."""
    last_end = -1
    for start, end in spans:
        if not start == end == last_end:
            yield start, end
        last_end = end


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


def test_the_negatives(shared: Callable[..., Path], engine: ReferenceQuery) -> None:
    lines = shared("cases", "regex", "negatives.jsonl").read_text(encoding="utf-8").splitlines()
    refused: list[tuple[str, PatternError]] = []
    accepted = set()
    for line in lines:
        pattern = json.loads(line)["pattern"]
        try:
            engine.compile(pattern)
            accepted.add(pattern)
        except PatternError as error:
            refused.append((pattern, error))
    assert accepted == set(ACCEPTED_NEGATIVES)
    assert len(refused) == len(lines) - len(ACCEPTED_NEGATIVES) >= 58
    assert all(0 <= error.position <= len(pattern.encode()) for pattern, error in refused)
