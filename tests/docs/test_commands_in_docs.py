"""The commands, options and examples in README and docs are true: they are run, or compared with the code."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from trident_core import hookspecs
from trident_core.cli.names import COMMANDS
from trident_core.cli.simulated import simulate_day
from trident_core.contracts import CONTRACT_VERSIONS, Capability, Kind
from trident_core.stats import KNOWN_ANOMALIES

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]


def blocks(page: Path, language: str = "") -> Iterator[str]:
    """The fenced blocks of one language; "" is a block without one."""
    for match in re.finditer(r"^```(\w*)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        if match[1] == language:
            yield match[2]


def commands(page: Path) -> list[list[str]]:
    lines = [line.partition("  #")[0].strip() for block in blocks(page) for line in block.splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("trident ")]


def run(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *args]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("user")
    simulate_day(made / "FILE", messages=6_000, symbols=12)
    return made


def test_the_commands_of_the_readme_work(folder: Path) -> None:
    found = commands(ROOT / "README.md")
    assert len(found) >= 5
    for args in found:
        words = [word.replace("AAPL", "ZXZZT") for word in args]
        done = run(folder, "-m", "trident_core.cli", *words)
        assert done.returncode == 0, (args, done.stderr)
        assert done.stdout


def test_the_python_example_of_the_readme_works(folder: Path) -> None:
    (example,) = blocks(ROOT / "README.md", "python")
    os.link(folder / "FILE", folder / "simulated-2019-12-30.itch50.gz")
    done = run(folder, "-c", example)
    assert done.returncode == 0, done.stderr
    assert "ZXZZT" in done.stdout or len(done.stdout.splitlines()) == 2


@pytest.mark.slow
def test_the_commands_of_the_command_line_page_work_in_order(tmp_path: Path) -> None:
    found = commands(ROOT / "docs" / "cli.md")
    assert {args[0] for args in found} == {*COMMANDS, "simulate", "facts"}
    for args in found:
        done = run(tmp_path, "-m", "trident_core.cli", *args)
        assert done.returncode == 0, (args, done.stderr)


def test_every_command_and_exit_code_is_on_the_page() -> None:
    page = (ROOT / "docs" / "cli.md").read_text()
    for name in (*COMMANDS, "simulate", "facts", "exchange", "order"):
        assert re.search(rf"^\| `{name}[ `\[]", page, re.MULTILINE), name
    for code in (0, 1, 2, 3, 4, 5, 130):
        assert f"| {code} |" in page


def test_every_hook_and_capability_is_documented_with_its_signature() -> None:
    page = (ROOT / "docs" / "contracts" / "README.md").read_text()
    names = [name for name in vars(hookspecs) if name.startswith("trident_register_")]
    assert len(names) == len(Kind)
    for name in names:
        signature = str(inspect.signature(getattr(hookspecs, name))).replace("'", "")
        assert f"`{name}{signature}`" in page
    for capability in Capability:
        assert f"| `{capability.value}` |" in page
    assert set(CONTRACT_VERSIONS.values()) == {(1, 0)}
    assert "1.0 for every kind" in page


def test_every_anomaly_a_contract_names_is_known_and_the_other_way_round() -> None:
    pages = "\n".join(page.read_text() for page in (ROOT / "docs").rglob("*.md"))
    for name in KNOWN_ANOMALIES:
        assert f"`{name}`" in pages, f"anomaly {name} is in no page"


def test_make_goals_that_the_docs_name_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for page in PAGES:
        for goal in re.findall(r"\bmake ([a-z][a-z-]+)", page.read_text()):
            if goal not in ("up", "a", "the", "it", "its", "sure", "sense"):
                assert re.search(rf"^{goal}:", makefile, re.MULTILINE), f"{page.name}: make {goal}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_files_that_the_architecture_names_exist() -> None:
    for name in re.findall(
        r"`((?:trident_core|plugins|conformance)/[\w/.]+)`", (ROOT / "ARCHITECTURE.md").read_text()
    ):
        assert (ROOT / name).exists(), name
