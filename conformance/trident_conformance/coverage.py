"""Which case holds which rule of the contract: the page docs/contracts/coverage.md, made from both.

`python -m trident_conformance.coverage DOCS [--check] [--tests FOLDER…]`: rules are the list items of
DOCS/contracts/*.md and DOCS/matching.md that begin with an id in bold; cases are the vectors whose reason,
and the tests whose docstring, or whose class's, names the id. FOLDERs hold tests of the project itself, for
rules that no suite can ask of a stranger's engine.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from trident_conformance.matrix import rules
from trident_conformance.vectors import topics

SUITES: Final = Path(__file__).parent / "suites"
PAGE: Final = "coverage.md"
_RULE: Final = re.compile(r"^- \*\*([A-Z]{4,}-\d+)\*\* (.*?)(?=^- |^#|^\n|\Z)", re.MULTILINE | re.DOTALL)
_WORDS: Final = 90


def rules_in(docs: Path) -> dict[str, tuple[str, str]]:
    """id -> (its page, its text in one line)."""
    found: dict[str, tuple[str, str]] = {}
    for page in _pages(docs):
        for name, text in _RULE.findall(page.read_text(encoding="utf-8")):
            if name in found:
                raise SystemExit(f"{page.name}: {name} stands in {found[name][0]} already")
            where = page.name if page.parent.name == "contracts" else f"../{page.name}"
            found[name] = where, " ".join(text.split())
    return found


def _pages(docs: Path) -> list[Path]:
    pages = sorted((docs / "contracts").glob("*.md"))
    return [*pages, *docs.glob("matching.md")]


def unnamed(docs: Path) -> list[str]:
    """Sentences with a `must` that belong to no rule, as page: sentence."""
    found = []
    for page in _pages(docs):
        if page.name in (PAGE, "README.md", "signatures.md"):
            continue
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        rest = _RULE.sub("", text)
        for sentence in re.split(r"(?<=[.:!?])\s|\n\n|^#.*$", rest, flags=re.MULTILINE):
            if re.search(r"\bmust\b(?!\*)", sentence):
                found += [f"{page.name}: {' '.join(sentence.split())}"]
    return found


def cases_in(folder: Path) -> dict[str, list[str]]:
    """id -> the tests that name it, as file::class::function."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        for place, named in _named(ast.parse(path.read_text(encoding="utf-8"))):
            for rule in named:
                found.setdefault(rule, []).append(f"{path.name}::{place}")
    return found


def vectors_in() -> dict[str, list[str]]:
    """id -> the vectors whose reason names it."""
    found: dict[str, list[str]] = {}
    for path in topics():
        for vector in json.loads(path.read_text(encoding="utf-8"))["vectors"]:
            for rule in rules(vector["reason"]):
                found.setdefault(rule, []).append(f"vector={vector['name']}")
    return found


def _named(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Each test of a module and the rules it names; where it names none, those of its class or module."""
    module = rules(ast.get_docstring(tree) or "")
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            held = rules(ast.get_docstring(node) or "")
            for test in node.body:
                if isinstance(test, ast.FunctionDef) and test.name.startswith("test"):
                    yield f"{node.name}::{test.name}", rules(ast.get_docstring(test) or "") or held or module
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            yield node.name, rules(ast.get_docstring(node) or "") or module


def page(docs: Path, tests: Sequence[Path] = ()) -> tuple[str, list[str]]:
    """The text of the page, and the rules that nothing holds."""
    suites = vectors_in()
    for rule, cases in cases_in(SUITES).items():
        suites.setdefault(rule, []).extend(cases)
    own: dict[str, list[str]] = {}
    for folder in tests:
        for rule, cases in cases_in(folder).items():
            own.setdefault(rule, []).extend(cases)
    lines = [
        "# Which case holds which rule",
        "",
        "Made by `python -m trident_conformance.coverage docs --tests tests`; a test keeps it true. *Suite*",
        "is what `trident conform` asks of every engine; *project* are tests of the project itself, for what",
        "cannot be asked of a stranger's engine.",
    ]
    bare, before = [], ""
    for name, (where, text) in sorted(rules_in(docs).items(), key=_order):
        if where != before:
            lines += [
                "",
                f"## [{Path(where).name}]({where})",
                "",
                "| rule | in short | suite | project |",
                "|---|---|---|---|",
            ]
            before = where
        if not suites.get(name) and not own.get(name):
            bare.append(name)
        lines.append(
            f"| {name} | {_short(text)} | {_listed(suites.get(name, []))} | {_listed(own.get(name, []))} |"
        )
    return "\n".join(lines) + "\n", bare


def _order(item: tuple[str, tuple[str, str]]) -> tuple[str, int]:
    return Path(item[1][0]).name, int(item[0].partition("-")[2])


def _short(text: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("|", "\\|")
    if len(text) <= _WORDS:
        return text
    cut = text[:_WORDS].rsplit(" ", 1)[0]
    return cut + ("`" if cut.count("`") % 2 else "") + " …"


def _listed(cases: list[str]) -> str:
    """At most three cases by name, and how many more."""
    shown = [f"`{case.removeprefix('test_').replace('.py', '')}`" for case in cases[:3]]
    return "<br>".join(shown) + (f"<br>and {len(cases) - 3} more" if len(cases) > 3 else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """0: written, or as it should be; 1: a rule without a case, a `must` without an id, or an old page."""
    parser = argparse.ArgumentParser(prog="python -m trident_conformance.coverage")
    parser.add_argument("docs", type=Path)
    parser.add_argument("--tests", type=Path, nargs="*", default=[])
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit with 1 when the page is old"
    )
    options = parser.parse_args(arguments)
    text, bare = page(options.docs, options.tests)
    known = set(rules_in(options.docs))
    strays = sorted(rule for rule in cases_in(SUITES) if rule not in known)
    for problem in (
        *(f"{rule}: no case holds it" for rule in bare),
        *(f"{rule}: named by a case, but no such rule" for rule in strays),
        *(f"a must without an id: {sentence}" for sentence in unnamed(options.docs)),
    ):
        print(problem, file=sys.stderr)
    target = options.docs / "contracts" / PAGE
    stale = not target.exists() or target.read_text(encoding="utf-8") != text
    if not options.check:
        target.write_text(text, encoding="utf-8")
    elif stale:
        print(f"{target.name} is old: make it again", file=sys.stderr)
    return int(bool(bare or strays or unnamed(options.docs)) or (options.check and stale))


if __name__ == "__main__":
    sys.exit(main())
