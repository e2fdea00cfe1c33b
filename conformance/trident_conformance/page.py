"""The report of a run as one HTML page, which opens without a server and loads nothing from elsewhere."""

from __future__ import annotations

import datetime as dt
import platform
from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Final

from trident_conformance.engines import REFERENCE
from trident_conformance.matrix import CORE, SUITES, Case, Cell, Matrix, by_reason
from trident_core import __version__
from trident_core.contracts import CONTRACT_VERSIONS

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881 }
:root { --ok: #1a7f37; --bad: #cf222e; --some: #9a6700 }
@media (prefers-color-scheme: dark) { :root { --ok: #3fb950; --bad: #ff7b72; --some: #d29922 } }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem }
h1 { line-height: 1.2; font-size: 1.7rem } h2 { font-size: 1.2rem; margin: 2rem 0 .5rem }
h4 { margin: .8rem 0 .2rem }
.wide { overflow-x: auto } .wide + .wide { margin-top: 1rem }
table { border-collapse: collapse }
th, td { border: 1px solid var(--line); padding: .35rem .7rem; text-align: left; vertical-align: top }
th { font-weight: 600; white-space: nowrap } thead th { background: var(--soft) }
td span { display: block; white-space: nowrap } td.none { opacity: .55; white-space: nowrap }
.ok { color: var(--ok) } .bad { color: var(--bad) } .some { color: var(--some) } small { opacity: .7 }
.bad { font-weight: 600 }
code { overflow-wrap: anywhere }
pre { overflow-x: auto; border: 1px solid var(--line); padding: .6rem; margin: .3rem 0 }
pre { font-size: 13px; line-height: 1.4 } pre.prose { white-space: pre-wrap; overflow-wrap: anywhere }
details { margin: .2rem 0 } summary { cursor: pointer; overflow-wrap: anywhere }
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
        f'<span class="bad">{len(failed):,} of {_cases(len(ran))} failed</span>'
        if failed
        else f'<span class="ok">{_cases(len(ran))}, none failed</span>'
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
            *(part for kind in SUITES for part in _kind(matrix, kind)),
            "<p><small>Each cell: how its cases ended, and their time. Core is what every engine of the kind "
            "must pass.</small></p>",
            *(
                f"<p>Note: {escape(kind)} <b>{escape(name)}</b>: {escape(note)}</p>"
                for (kind, name), notes in matrix.notes.items()
                for note in notes
            ),
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


def _cases(n: int) -> str:
    return f"{n:,} case" if n == 1 else f"{n:,} cases"


def _cell(cell: Cell | None, nothing: str = "–") -> str:
    if cell is None:
        return f'<td class="none">{nothing}</td>'
    parts = [f'<span class="bad">{cell.failed:,} failed</span>'] if cell.failed else []
    parts += [f'<span class="ok">{cell.passed:,} passed</span>'] if cell.passed else []
    parts += [f'<span class="some">{cell.known:,} known</span>'] if cell.known else []
    parts += [f'<span class="some">{cell.skipped:,} skipped</span>'] if cell.skipped else []
    return f"<td>{''.join(parts)}<small>{cell.seconds:.1f}&nbsp;s</small></td>"


def _kind(matrix: Matrix, kind: str) -> Iterable[str]:
    """The engines of one kind: their own suite by capability, and the line. Engines that only stood by in
    the line of others are left out."""
    rows = [(name, suites, parts) for its, name, suites, parts in matrix.cells() if its == kind]
    rows = [row for row in rows if kind in row[1] or row[0] != REFERENCE]
    if not rows:
        return
    declared = {name: matrix.declared.get((kind, name), []) for name, *_ in rows}
    columns = sorted(
        {*(a for *_, parts in rows for a in parts), *(a for some in declared.values() for a in some)}
    )
    in_line = any("pipeline" in suites for _, suites, _ in rows)
    heads = [
        "engine",
        *(escape(column or "core") for column in columns),
        *(["in the line"] if in_line else []),
    ]
    yield f"<h2>{kind.capitalize()}</h2>"
    yield '<div class="wide"><table><thead><tr>'
    yield "".join(f"<th>{head}</th>" for head in heads) + "</tr></thead>"
    for name, suites, parts in rows:
        cells = []
        for column in columns:
            cell = parts.get(column)
            if column != CORE and column not in declared[name]:
                cells.append(_cell(None, "not declared"))
            else:
                cells.append(_cell(cell, "no case"))
        cells += [_cell(suites.get("pipeline"))] if in_line else []
        yield f"<tr><th>{escape(name)}</th>{''.join(cells)}</tr>"
    yield "</table></div>"


def _failure(case: Case) -> str:
    parts = "".join(
        f"<h4>{escape(title)}</h4><pre{' class=prose' if title == 'again' else ''}>{escape(text)}</pre>"
        for title, text in case.evidence.items()
    )
    held = f" <small>{case.held()}</small>" if case.rules else ""
    return (
        f'<details><summary><span class="bad">failed</span> <code>{escape(case.id)}</code>{held}</summary>'
        f"<pre class=prose>{escape(case.reason)}</pre>{parts}</details>"
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
    yield "<details><summary>Rules of the contract and how their cases ended</summary>"
    yield '<div class="wide"><table>'
    for rule in sorted(cells, key=lambda name: (name.split("-")[0], int(name.split("-")[1]))):
        yield f"<tr><th>{rule}</th>{_cell(cells[rule])}</tr>"
    yield "</table></div></details>"
