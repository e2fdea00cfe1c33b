"""`trident new-plugin`: what it writes is complete and passes its own checks at once."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from trident_core import scaffold
from trident_core.contracts import Kind
from trident_core.errors import UsageError

KINDS = [str(kind) for kind in Kind]


def run(*command: str | Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=900, check=False,
        env={**os.environ, **variables},
    )  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_the_package_is_selected_by_its_name(kind: str, tmp_path: Path) -> None:
    """As an editable install has it: on the path, with an entry point."""
    done = run(
        sys.executable, "-m", "trident_core.cli", "new-plugin", kind, "my-own", "--json", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)
    folder = tmp_path / written["folder"]
    assert {"pyproject.toml", "README.md", "tests/test_engine.py"} <= set(written["files"])
    for path in folder.rglob("*.py"):
        compile(path.read_text(), str(path), "exec")
        assert "@" not in path.read_text().replace("@hookimpl", "").replace("@property", "").replace(
            "@classmethod", ""
        ).replace("@next_seq", "").replace("@position", "")
    site = folder / "src"
    info = site / "x-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: trident-{kind}-my-own\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[trident]\nmine = trident_{kind}_my_own.plugin\n")
    listed = run(
        sys.executable, "-m", "trident_core.cli", "plugins", "--json", folder=tmp_path, PYTHONPATH=str(site)
    )
    (row,) = [row for row in json.loads(listed.stdout) if row["distribution"] == f"trident-{kind}-my-own"]
    assert (row["kind"], row["name"], row["status"]) == (kind, "my-own", "ok")
    (note,) = row["notes"]
    assert (
        note == f'its summary is still "a {kind} that is yet to be filled in": write in plugin.py what it is'
    )
    if kind in ("feed", "command"):
        tests = run(sys.executable, "-m", "pytest", "-q", folder=folder, PYTHONPATH=str(site))
        assert tests.returncode == 0, tests.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parser", "book", "store", "query", "sequence"])
def test_it_keeps_the_contract_at_once(kind: str, tmp_path: Path) -> None:
    scaffold.write(scaffold.plan(Kind(kind), "mine", tmp_path / "p"))
    done = run(
        sys.executable, "-m", "trident_core.cli", "conform", f"--{kind}",
        f"trident_{kind}_mine.engine:Mine{kind.capitalize()}", "--quick", "--json",
        folder=tmp_path, PYTHONPATH=str(tmp_path / "p" / "src"),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    (engine,) = json.loads(done.stdout)["engines"]
    assert engine["suites"][kind]["failed"] == 0
    assert engine["suites"][kind]["passed"] > 20


@pytest.mark.slow
def test_from_nothing_to_conform_in_a_fresh_environment(tmp_path: Path) -> None:
    """Generated, built as a wheel, installed beside Trident in a new environment, selected, conforming."""
    root = Path(scaffold.__file__).resolve().parents[1]
    if not (root / "pyproject.toml").exists():
        pytest.skip("not a checkout: there is nothing to install Trident from")
    scaffold.write(scaffold.plan(Kind.BOOK, "mine", tmp_path / "p"))
    assert run(sys.executable, "-m", "venv", "env", folder=tmp_path).returncode == 0
    python = tmp_path / "env" / "bin" / "python"
    pip: list[str | Path] = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    built = run(*pip, "wheel", "--no-deps", "--wheel-dir", "dist", "./p", folder=tmp_path)
    assert built.returncode == 0, built.stderr
    (wheel,) = (tmp_path / "dist").glob("trident_book_mine-0.1.0-*.whl")
    installed = run(*pip, "install", f"{root}[conformance]", wheel, folder=tmp_path)
    assert installed.returncode == 0, installed.stderr
    trident = tmp_path / "env" / "bin" / "trident"
    day = ["simulate", "day", "-n", "3000", "-s", "6"]  # made here: the new one would compile the simulator
    assert run(sys.executable, "-m", "trident_core.cli", *day, folder=tmp_path).returncode == 0
    replayed = run(
        trident, "replay", "day", "--book", "mine", "--parser", "reference", "--json", folder=tmp_path
    )
    assert json.loads(replayed.stdout)["engines"]["book"] == "mine", replayed.stderr
    done = run(trident, "conform", "--book", "mine", "--quick", "--report", "r.html", folder=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "none failed" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize("name", ["", "My", "two words", "x" * 65, "-x", ".x", "naïve"])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name"):
        scaffold.plan(Kind.BOOK, name)


@pytest.mark.parametrize("name", ["1st", "x" * 64, "a.b", "class", "a--b-", "my_book", "0"])
@pytest.mark.parametrize("kind", [Kind.BOOK, Kind.COMMAND])
def test_every_name_that_plugins_may_have_gives_a_package(kind: Kind, name: str) -> None:
    files = scaffold.plan(kind, name).files
    for path, text in files.items():
        if path.endswith(".py"):
            compile(text, path, "exec")
            assert all(part.isidentifier() for part in path.removesuffix(".py").split("/"))
    project = tomllib.loads(files["pyproject.toml"])["project"]
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", project["name"])
    assert f'name="{name}"' in next(text for path, text in files.items() if path.endswith("plugin.py"))


@pytest.mark.parametrize(
    ("kind", "name"), [(Kind.BOOK, "reference"), (Kind.STORE, "lsm"), (Kind.FEED, "lobster")]
)
def test_a_name_of_the_projects_own_is_refused(kind: Kind, name: str) -> None:
    with pytest.raises(UsageError, match=f"Trident's own {kind} engine is called '{name}'"):
        scaffold.plan(kind, name)


def test_what_the_suite_of_a_kind_needs_is_in_the_extra_test() -> None:
    def extra(kind: Kind) -> list[str]:
        project = tomllib.loads(scaffold.plan(kind, "mine").files["pyproject.toml"])["project"]
        return list(project["optional-dependencies"]["test"])

    assert extra(Kind.SEQUENCE) == ["trident-core[conformance,sql]"]
    assert extra(Kind.BOOK) == ["trident-core[conformance]"]


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="already"):
        scaffold.write(scaffold.plan(Kind.BOOK, "mine", tmp_path))
    with pytest.raises(UsageError, match="has a command 'run'"):
        scaffold.plan(Kind.COMMAND, "run")
    done = run(sys.executable, "-m", "trident_core.cli", "new-plugin", "boook", "x", folder=tmp_path)
    assert (done.returncode, "takes feed, parser, book" in done.stderr) == (2, True)
