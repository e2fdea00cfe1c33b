"""The report of a run as one HTML page, which opens without a server and loads nothing from elsewhere."""

from __future__ import annotations

import datetime as dt
import platform
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Final

from trident_conformance.matrix import CORE, SUITES, Case, Cell, Matrix, by_reason
from trident_core import __version__
from trident_core.contracts import CONTRACT_VERSIONS

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --ok: #1a7f37; --bad: #cf222e; --some: #9a6700 }
@media (prefers-color-scheme: dark) { :root { --ok: #3fb950; --bad: #ff7b72; --some: #d29922 } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0; width: 100% }
th, td { border: 1px solid var(--line); padding: .35rem .6rem; text-align: left; vertical-align: top }
th { font-weight: 600 } td.n { text-align: right; font-variant-numeric: tabular-nums }
.ok { color: var(--ok) } .bad { color: var(--bad) } .some { color: var(--some) } small { opacity: .7 }
pre { overflow-x: auto; border: 1px solid var(--line); padding: .6rem; font-size: 13px; line-height: 1.4 }
summary { cursor: pointer; overflow-wrap: anywhere }
"""


def write(path: Path, matrix: Matrix, *, command: str, seconds: float) -> None:
    """Write the page to `path`, whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(render(matrix, command=command, seconds=seconds), encoding="utf-8")
    part.replace(path)


def render(matrix: Matrix, *, command: str, seconds: float) -> str:
    failed = matrix.failed()
    ran = [case for case in matrix.cases.values() if case.outcome in ("passed", "failed", "known")]
    verdict = (
        f'<span class="bad">{len(failed)} of {len(ran)} cases failed</span>'
        if failed
        else f'<span class="ok">{len(ran)} cases, none failed</span>'
    )
    contracts = ", ".join(f"{kind} {major}.{minor}" for kind, (major, minor) in CONTRACT_VERSIONS.items())
    made = dt.datetime.now(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")
    return "\n".join(
        [
            '<!doctype html><html lang="en"><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width"><title>Trident conformance</title>',
            f"<style>{_STYLE}</style><h1>Conformance: {verdict}</h1>",
            f"<p><code>{escape(command)}</code><br><small>{made}, {seconds:.0f} s, trident-core "
            f"{__version__}, Python {platform.python_version()}, {escape(platform.machine())}; "
            f"contracts: {contracts}</small></p>",
            "<h2>Engines and suites</h2>",
            *_suites(matrix),
            "<h2>Capabilities</h2>",
            *_abilities(matrix),
            "<h2>Failures</h2>" if failed else "",
            *(_failure(case) for case in failed),
            "<h2>Known failures</h2>" if _with(matrix, "known") else "",
            *_reasons(_with(matrix, "known")),
            "<h2>Skipped</h2>",
            *(_reasons(_with(matrix, "skipped")) or ["<p>Nothing.</p>"]),
            "<h2>Rules</h2>",
            *_rules(matrix),
            "</html>",
        ]
    )


def _with(matrix: Matrix, outcome: str) -> list[Case]:
    return [case for case in matrix.cases.values() if case.outcome == outcome]


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "<td>–</td>"
    parts = [f'<span class="ok">{cell.passed} passed</span>'] if cell.passed else []
    parts += [f'<span class="bad">{cell.failed} failed</span>'] if cell.failed else []
    parts += [f'<span class="some">{cell.known} known</span>'] if cell.known else []
    parts += [f'<span class="some">{cell.skipped} skipped</span>'] if cell.skipped else []
    return f"<td>{', '.join(parts)} <small>{cell.seconds:.1f} s</small></td>"


def _suites(matrix: Matrix) -> Iterable[str]:
    yield "<table><tr><th>kind</th><th>engine</th>" + "".join(f"<th>{name}</th>" for name in SUITES) + "</tr>"
    for kind, name, suites, _ in matrix.cells():
        cells = "".join(_cell(suites.get(suite)) for suite in SUITES)
        yield f"<tr><td>{kind}</td><th>{escape(name)}</th>{cells}</tr>"
    yield "</table>"


def _abilities(matrix: Matrix) -> Iterable[str]:
    yield "<table><tr><th>kind</th><th>engine</th><th>capability</th><th>declared</th><th>its cases</th></tr>"
    for kind, name, _, abilities in matrix.cells():
        declared = matrix.declared.get((kind, name), [])
        for ability in sorted({*abilities, *declared}):
            said = "all must" if ability == CORE else "yes" if ability in declared else "no"
            yield f"<tr><td>{kind}</td><th>{escape(name)}</th><td>{escape(ability or 'core')}</td>"
            yield f"<td>{said}</td>{_cell(abilities.get(ability))}</tr>"
    yield "</table>"


def _failure(case: Case) -> str:
    parts = "".join(f"<h4>{escape(t)}</h4><pre>{escape(text)}</pre>" for t, text in case.evidence.items())
    held = f" <small>{case.held()}</small>" if case.rules else ""
    return (
        f'<details><summary><span class="bad">failed</span> <code>{escape(case.id)}</code>{held}</summary>'
        f"<pre>{escape(case.reason)}</pre>{parts}</details>"
    )


def _reasons(cases: list[Case]) -> list[str]:
    """Cases by their reason, which many share."""
    return [
        f"<details><summary>{len(some)} × {escape(reason)}</summary>"
        f"<pre>{escape(chr(10).join(case.id for case in some))}</pre></details>"
        for reason, some in by_reason(cases).items()
    ]


def _rules(matrix: Matrix) -> Iterable[str]:
    """Each rule that ran, with how its cases ended."""
    cells: dict[str, Cell] = {}
    for case in matrix.cases.values():
        for rule in case.rules:
            if case.outcome:
                cells.setdefault(rule, Cell()).add(case)
    yield "<details><summary>Rules of the contract and how their cases ended</summary><table>"
    for rule in sorted(cells, key=lambda name: (name.split("-")[0], int(name.split("-")[1]))):
        yield f"<tr><th>{rule}</th>{_cell(cells[rule])}</tr>"
    yield "</table></details>"
