"""Outcomes of a run, by engine, suite and capability: a pytest plugin, and what can be read from it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import pytest
from rich.table import Table

from trident_conformance import evidence
from trident_conformance.engines import Engine, engines_of
from trident_core.contracts import Capability, Kind
from trident_core.engines import notes

SUITES: Final = ("feed", "parser", "book", "store", "query", "sequence", "pipeline")
#: The capability of tests that every engine of a kind must pass.
CORE: Final = ""
#: What pytest puts before the words of a failure of ours.
_OURS: Final = re.compile(r"^(trident_conformance\.evidence\.DifferenceError|AssertionError): ")
LENIENT: Final = str(Capability.LENIENT)
_RULE: Final = re.compile(r"\b([A-Z]{4,})-(\d+)((?:(?:, | to | and )(?:\1-)?\d+)*)")


@dataclass
class Case:
    """One test of one engine, or of one line of engines. `evidence` is what a failure shows, by title."""

    id: str
    engines: list[tuple[str, str]]
    suite: str
    capability: str = CORE
    rules: list[str] = field(default_factory=list)
    outcome: str = ""
    seconds: float = 0.0
    reason: str = ""
    evidence: dict[str, str] = field(default_factory=dict)
    #: The command that runs it alone.
    again: str = ""

    def held(self) -> str:
        """The rules it holds, in few words."""
        few = len(self.rules) <= 6
        return ", ".join(self.rules) if few else f"{self.rules[0]} … {self.rules[-1]}"


@dataclass
class Cell:
    """One engine in one suite, or in the part of it that one capability has. `failures` are the test ids."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    known: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)

    def add(self, case: Case) -> None:
        self.seconds += case.seconds
        setattr(self, case.outcome, getattr(self, case.outcome) + 1)
        if case.outcome == "failed":
            self.failures.append(case.id)

    def shown(self) -> str:
        colour = "red" if self.failed else "green" if self.passed else "yellow"
        parts = [f"[{colour}]{self.passed} passed[/]" if self.passed or not self.failed else ""]
        parts += [f"[red]{self.failed} failed[/]" if self.failed else ""]
        parts += [f"[yellow]{self.known} known failures[/]" if self.known else ""]
        parts += [f"[yellow]{self.skipped} skipped[/]" if self.skipped else ""]
        return ", ".join(filter(None, parts)) + f" [dim]{self.seconds:.1f}\N{NO-BREAK SPACE}s[/]"


def rules(text: str) -> list[str]:
    """The rules that a docstring names: "BOOK-2, 3 to 5" is BOOK-2, BOOK-3, BOOK-4, BOOK-5."""
    found: list[str] = []
    for match in _RULE.finditer(text):
        last = int(match[2])
        found.append(f"{match[1]}-{last}")
        for how, number in re.findall(r"(, | to | and )(?:[A-Z]+-)?(\d+)", match[3]):
            first = last + 1 if how == " to " else int(number)
            last = int(number)
            found += [f"{match[1]}-{n}" for n in range(first, last + 1)]
    return found


def cells_of(cases: Iterable[Case]) -> dict[tuple[str, str], tuple[dict[str, Cell], dict[str, Cell]]]:
    """(kind, engine) -> its cells by suite, and those of its own suite by capability, of cases that ended."""
    found: dict[tuple[str, str], tuple[dict[str, Cell], dict[str, Cell]]] = {}
    for case in cases:
        for engine in case.engines if case.outcome else ():
            suites, abilities = found.setdefault(engine, ({}, {}))
            suites.setdefault(case.suite, Cell()).add(case)
            if case.suite == engine[0]:
                abilities.setdefault(case.capability, Cell()).add(case)
    return found


class Matrix:
    """A pytest plugin that keeps the outcome of every case of the suites."""

    def __init__(self) -> None:
        self.cases: dict[str, Case] = {}
        self.declared: dict[tuple[str, str], list[str]] = {}
        #: What is odd about engines that can be used, by kind and name.
        self.notes: dict[tuple[str, str], list[str]] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            engines = engines_of(item)
            suite = item.path.stem.split("_")[1]
            if engines and suite in SUITES:
                self.cases[item.nodeid] = _case(item, engines, suite)
                for engine in engines:
                    key = str(engine.kind), engine.name
                    self.declared[key] = sorted(engine.spec.capabilities)
                    self.notes[key] = notes(engine.spec)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        case = self.cases.get(report.nodeid)
        if case is None:
            return
        case.seconds += report.duration
        if report.failed:
            case.outcome = "failed"
            crash = getattr(report.longrepr, "reprcrash", None)
            message = str(crash.message) if crash else str(report.longrepr)
            case.reason = _OURS.sub("", message)[:500]
            case.evidence |= dict(report.sections)
        elif report.skipped:
            known = hasattr(report, "wasxfail")
            case.outcome = "known" if known else "skipped"
            case.reason = report.wasxfail if known else _skip_reason(report)
        elif report.when == "call" and not case.outcome:
            case.outcome = "passed"

    # --- answers

    def cells(self) -> Iterator[tuple[str, str, dict[str, Cell], dict[str, Cell]]]:
        """kind, engine, its cells by suite, and those of its own suite by capability (CORE: of all)."""
        found = cells_of(self.cases.values())
        for kind, name in sorted(found, key=lambda engine: (SUITES.index(engine[0]), engine[1])):
            yield kind, name, *found[kind, name]

    def to_json(self) -> list[dict[str, Any]]:
        return [
            {
                "kind": kind,
                "engine": name,
                "declared": self.declared.get((kind, name), []),
                "notes": self.notes.get((kind, name), []),
                "suites": {suite: asdict(cell) for suite, cell in suites.items()},
                "capabilities": {ability or "core": asdict(cell) for ability, cell in abilities.items()},
            }
            for kind, name, suites, abilities in self.cells()
        ]

    def failed(self) -> list[Case]:
        return [case for case in self.cases.values() if case.outcome == "failed"]

    def table(self) -> Table:
        made = Table(title="Conformance", title_justify="left")
        for column in ("kind", "engine", "its own suite", "in the line"):
            made.add_column(column)
        for kind, name, suites, _ in self.cells():
            own, line = suites.get(kind), suites.get("pipeline")
            made.add_row(kind, name, own.shown() if own else "-", line.shown() if line else "-")
        return made


def _case(item: pytest.Item, engines: Sequence[Engine], suite: str) -> Case:
    marker = item.get_closest_marker("needs_capability")
    holder = getattr(item, "cls", None)
    docs = [getattr(item, "function", None), holder, getattr(item, "module", None) if not holder else None]
    texts = [getattr(doc, "__doc__", "") or "" for doc in docs]
    vector = getattr(item, "callspec", None) and item.callspec.params.get("vector")  # type: ignore[attr-defined]
    if vector is not None:
        texts.insert(0, vector.data["reason"])
    lenient = vector is not None and vector.data.get("lenient")
    named = next((found for text in texts if (found := rules(text))), [])
    return Case(
        id=short(item.nodeid),
        engines=[(str(engine.kind), engine.name) for engine in engines],
        suite=suite,
        capability=str(marker.args[0]) if marker else LENIENT if lenient else CORE,
        rules=named,
        again=again(item),
    )


def again(item: pytest.Item, example: str | None = None) -> str:
    """The command that runs one case alone, on the same examples, `example` first."""
    option = item.config.getoption
    words = ["trident", "conform"]
    engines = engines_of(item)
    for engine in engines:
        words += [f"--{engine.kind}", _option(engine)]
    if any(engine.kind is Kind.FEED for engine in engines):
        words += [word for path in option("sample") for word in ("--sample", path)]
    words += [f"--{name}" for name in ("pairs", "quick") if option(name)]
    for name in ("examples", "seed"):
        words += [] if option(name) is None else [f"--{name}", str(option(name))]
    words += ["--case", short(item.nodeid)]
    words += ["--example", example] if example else []
    return shlex.join([*words, "--tb=long"])


def _option(engine: Engine) -> str:
    """The engine as an option names it."""
    return "+".join([engine.name, *sorted(engine.spec.capabilities)]) if ":" in engine.name else engine.name


def by_reason(cases: Iterable[Case]) -> dict[str, list[Case]]:
    """Cases by their reason, which many share; the reasons of most first."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(case.reason, []).append(case)
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def short(nodeid: str) -> str:
    """A node id without the folders of the suites: what `-k`, `--case` and known failures go by."""
    return nodeid.rpartition("/")[2]


def _skip_reason(report: pytest.TestReport) -> str:
    where = report.longrepr
    text = str(where[2]) if isinstance(where, tuple) else str(where)
    return text.removeprefix("Skipped: ")


def add_evidence(report: pytest.TestReport, error: BaseException | None, command: str) -> None:
    """Put the input, both outputs and the command that runs the case again into the report of a failure."""
    if given := evidence.inputs():
        report.sections.append(("input", given))
    if isinstance(error, evidence.DifferenceError):
        report.sections.append((error.what, evidence.side_by_side(error.found, error.expected)))
    report.sections.append(("again", command))
