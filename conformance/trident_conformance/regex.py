"""`python -m trident_conformance regex CASES [--engine NAME …] [--every N] [--json]`: every query engine
against cases that the authors of other regex engines made.

CASES is a file of JSON lines: id, source, pattern, flags, haystack (base64), semantics (leftmost-first,
leftmost-longest, all-ends, all), search (leftmost, overlapping, earliest), anchored, and expect: {"spans":
…}, {"ends": …}, {"match": …} or {"matches": …}. Each case is passed, failed, refused (by the dialect or by
the engine, with the name of what is refused) or not judged, for a reason that is named; nothing else happens
to it.
"""

from __future__ import annotations

import argparse
import base64
import functools
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from trident_conformance.engines import Engine, select
from trident_core.contracts import Capability, Kind
from trident_core.errors import PatternError, TridentError

Case = dict[str, Any]
Spans = list[tuple[int, int]]

#: Why the front end refuses a pattern of another dialect: its error -> the difference (docs/dialect.md).
REFUSALS: Final = {
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

#: How an engine refuses what the dialect has: its error -> the name of the cap or limit.
ENGINE_REFUSALS: Final = {
    r"cap '(states|table_bytes|seconds|positions|edges)'": "a cap of the engine",
    r"RE2 does not take it": "RE2's own limits",
}


@dataclass
class Verdict:
    """What became of the cases with one engine. `refused` and `not_judged`: reason -> count."""

    engine: str
    cases: int = 0
    passed: Counter[str] = field(default_factory=Counter)  # by source
    refused: Counter[str] = field(default_factory=Counter)
    not_judged: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def complete(self) -> bool:
        """Whether every case is in one of the four."""
        others = self.refused.total() + self.not_judged.total() + len(self.failures)
        return self.passed.total() + others == self.cases

    def to_json(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "cases": self.cases,
            "passed": self.passed.total(),
            "refused": self.refused.total(),
            "failed": len(self.failures),
            "not_judged": self.not_judged.total(),
            "passed_by_source": dict(self.passed.most_common()),
            "refused_by_name": dict(self.refused.most_common()),
            "not_judged_by_reason": dict(self.not_judged.most_common()),
            "failures": self.failures,
        }


def load(path: Path) -> list[Case]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def exclusion(case: Case) -> str | None:
    """Why a case cannot be judged whatever the engine does, or None."""
    if "line_terminator" in case:
        return "line terminators other than LF"
    if "bounds" in case:
        return "searches of a part of a text"
    if case["search"] == "overlapping" and case["semantics"] == "leftmost-first":
        return "overlapping leftmost-first matches"
    if case["search"] == "leftmost" and case["semantics"] == "all":
        return "match kind all without a leftmost rule"
    return None


class Judge:
    """One engine, asked about cases. Programs are kept, since patterns come again with other texts."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.query = engine.make()
        self.has_ends = engine.declares(Capability.ENDS)
        self.has_first = engine.declares(Capability.FIRST)
        self.compiled = functools.lru_cache(maxsize=512)(self._compile)

    def _compile(self, pattern: str, flags: str, full: bool, first: bool) -> Any:
        options = {"first": True} if first and self.has_first else {}
        try:
            return self.query.compile(pattern, flags=flags, full=full, **options)
        except PatternError as error:
            return error

    def program(self, case: Case, pattern: str, *, first: bool = False) -> Any:
        found = self.compiled(pattern, case["flags"], bool(case.get("fullmatch")), first)
        if isinstance(found, PatternError):
            raise found
        return found

    def ends(self, case: Case, pattern: str, data: bytes) -> list[int]:
        found: list[int] = self.program(case, pattern).ends(data)
        return found

    def difference(self, case: Case, data: bytes) -> str | None:
        """What is wrong, or None."""
        expect, pattern = case["expect"], case["pattern"]
        if "matches" in expect:
            return self._many(case, data)
        first = case["semantics"] == "leftmost-first"
        if case["anchored"]:
            # Anchored iteration is not in the contract; its first step is a search behind \A.
            if case["search"] == "earliest":
                ends = self.ends(case, f"\\A(?:{pattern})", data)
                return _differ("first end", ends[:1], [end for _, end in expect["spans"][:1]])
            got = self.program(case, f"\\A(?:{pattern})", first=first).spans(data, 1)
            return _differ("first span", got, [tuple(s) for s in expect["spans"][:1]])
        if "ends" in expect or case["search"] == "overlapping":
            wanted = expect["ends"] if "ends" in expect else sorted({end for _, end in expect["spans"]})
            return _differ("ends", self.ends(case, pattern, data), wanted)
        if "match" in expect:
            found = bool(self.program(case, pattern).spans(data, 1))
            return _differ("existence", found, expect["match"])
        if case["search"] == "earliest":
            return _differ(
                "first end", self.ends(case, pattern, data)[:1], [e for _, e in expect["spans"][:1]]
            )
        spans = [(start, end) for start, end in expect["spans"]]
        if case.get("iter") == "python":
            spans = list(without_abutting(spans))
        program = self.program(case, pattern, first=first)
        wrong = _differ("spans", program.spans(data, case.get("limit", 0)), spans)
        return wrong or self._field(program, case, data, bool(spans))

    def _field(self, program: Any, case: Case, data: bytes, exists: bool) -> str | None:
        """The same text as a value of a column, where its end is no padding."""
        if not data or data[-1:] in b" \0" or len(data) > 64 or "limit" in case:
            return None
        return _differ("match", program.match(np.array([data])).tolist(), [exists])

    def _many(self, case: Case, data: bytes) -> str | None:
        """Several patterns: the ends of each, or the preferred one of each place as an alternation."""
        if case["semantics"] == "leftmost-first":
            together = "|".join(f"(?:{pattern})" for pattern in case["pattern"])
            spans = [(start, end) for _, start, end in case["expect"]["matches"]]
            return _differ("spans", self.program(case, together, first=True).spans(data), spans)
        ends = defaultdict(set)
        for number, _, end in case["expect"]["matches"]:
            ends[number].add(end)
        for number, pattern in enumerate(case["pattern"]):
            wrong = _differ(f"ends of pattern {number}", self.ends(case, pattern, data), sorted(ends[number]))
            if wrong:
                return wrong
        return None

    def asks_ends(self, case: Case) -> bool:
        return (
            "ends" in case["expect"]
            or case["search"] in ("overlapping", "earliest")
            or ("matches" in case["expect"] and case["semantics"] != "leftmost-first")
        )


def judge(cases: Iterable[Case], engine: Engine) -> Verdict:
    """Every case with one engine."""
    verdict, asked = Verdict(engine.name), Judge(engine)
    for case in cases:
        verdict.cases += 1
        data = base64.b64decode(case["haystack"])
        reason = exclusion(case)
        if reason is None and asked.asks_ends(case) and not asked.has_ends:
            reason = "ends of matches: not declared by the engine"
        if reason is None and case["semantics"] == "leftmost-first" and not asked.has_first:
            reason = "leftmost-first: not declared by the engine"
        if reason:
            verdict.not_judged[reason] += 1
            continue
        try:
            wrong = asked.difference(case, data)
        except PatternError as error:
            name = refusal(error)
            if name:
                verdict.refused[name] += 1
            else:
                verdict.failures.append(f"{case['id']}: {error}")
            continue
        if wrong and (newline := final_newline(case, data, asked)):
            verdict.not_judged[newline] += 1
        elif wrong:
            verdict.failures.append(f"{case['id']}: {case['pattern']!r} on {data[:80]!r}: {wrong}")
        else:
            verdict.passed[case["source"]] += 1
    return verdict


def refusal(error: PatternError) -> str | None:
    """The name of what was refused, or None for an error that has none."""
    for known, kind in ((REFUSALS, "dialect"), (ENGINE_REFUSALS, "engine")):
        for regex, name in known.items():
            if re.search(regex, error.reason):
                return f"{kind}: {name}"
    return None


def final_newline(case: Case, data: bytes, asked: Judge) -> str | None:
    """PCRE and Hyperscan treat a newline at the very end apart; if that explains a difference, the reason."""
    if case["source"] not in ("hyperscan", "pcre2") or not data.endswith(b"\n"):
        return None
    if "ends" in case["expect"]:
        differences = set(case["expect"]["ends"]) ^ set(asked.ends(case, case["pattern"], data))
        if not differences <= {len(data) - 1, len(data)}:
            return None
    multiline = "m" in case["flags"]
    if not multiline and "$" in case["pattern"]:
        return "$ before a final newline, without flag m"
    if multiline and "^" in case["pattern"]:
        return "no ^ after a final newline, with flag m"
    return None


def without_abutting(spans: Spans) -> Iterator[tuple[int, int]]:
    """Python gives an empty match at the end of the match before it; here, as in Go and Rust, not."""
    last_end = -1
    for start, end in spans:
        if not start == end == last_end:
            yield start, end
        last_end = end


def _differ(what: str, got: Any, wanted: Any) -> str | None:
    return None if got == wanted else f"{what} {str(got)[:200]}, not {str(wanted)[:200]}"


def main(arguments: Sequence[str]) -> int:
    """The command. Returns 0 if no engine failed a case, 1 otherwise, 2 for a wrong command line."""
    parser = argparse.ArgumentParser(prog="python -m trident_conformance regex", description=__doc__)
    parser.add_argument("cases", type=Path, help="a file of JSON lines")
    parser.add_argument("--engine", action="append", help="only this query engine; may be given again")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every Nth case")
    parser.add_argument("--json", action="store_true", help="print JSON")
    given = parser.parse_args(list(arguments))
    try:
        cases = load(given.cases)[:: max(1, given.every)]
        engines = [e for e in select(Kind.QUERY, given.engine) if not e.missing]
    except (OSError, ValueError, TridentError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    verdicts = []
    for engine in engines:
        if engine.declares(Capability.SPANS):
            verdicts.append(judge(cases, engine))
            if not given.json:
                _print(verdicts[-1])
    if given.json:
        print(json.dumps([verdict.to_json() for verdict in verdicts], indent=1))
    return int(any(verdict.failures or not verdict.complete() for verdict in verdicts))


def _print(verdict: Verdict) -> None:
    print(
        f"{verdict.engine}: {verdict.cases:,} cases, {verdict.passed.total():,} passed, "
        f"{verdict.refused.total():,} refused by name, {len(verdict.failures):,} failed, "
        f"{verdict.not_judged.total():,} not judged"
    )
    for title, counts in (("refused", verdict.refused), ("not judged", verdict.not_judged)):
        for name, count in counts.most_common():
            print(f"  {count:6,}  {title}: {name}")
    for failure in verdict.failures[:20]:
        print(f"  failed: {failure}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
