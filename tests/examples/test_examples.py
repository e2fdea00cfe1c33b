"""The complete third-party packages in examples/: listed as any stranger's, and right by the whole suite."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NAMES = {"trident-book-sorted": ("book", "sorted"), "trident-store-arrow": ("store", "arrow")}


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """What pip would leave of the example: its source on the path, its metadata beside it."""
    folder = EXAMPLES / request.param
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    made = tmp_path / "site"
    info = made / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = "".join(f"{name} = {target}\n" for name, target in project["entry-points"]["trident"].items())
    (info / "entry_points.txt").write_text(f"[trident]\n{points}")
    for package in (folder / "src").iterdir():
        if package.is_dir() and not package.name.endswith(".egg-info"):
            (made / package.name).symlink_to(package)
    return made


def run(site: Path, *command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=280, check=False,
        env={**os.environ, "PYTHONPATH": str(site), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.iterdir() if (path / "pyproject.toml").exists()} == set(NAMES)


@pytest.mark.parametrize("site", NAMES, indirect=True)
def test_it_is_listed_with_what_it_declares(site: Path, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.params["site"]
    kind, engine = NAMES[name]
    done = run(site, "-m", "trident_core.cli", "plugins", "--json", folder=site)
    (row,) = [row for row in json.loads(done.stdout) if row["distribution"] == name]
    assert (row["kind"], row["name"], row["status"]) == (kind, engine, "ok")
    assert row["summary"] in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("site", NAMES, indirect=True)
def test_its_own_tests_and_the_whole_contract(
    site: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    name = request.node.callspec.params["site"]
    own = run(
        site, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLES / name / "tests"), folder=tmp_path
    )
    assert own.returncode == 0, own.stdout[-4_000:]
    kind, engine = NAMES[name]
    done = run(
        site, "-m", "trident_core.cli", "conform", f"--{kind}", engine, "--json", "--examples", "12",
        folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4_000:]
    (found,) = json.loads(done.stdout)["engines"]
    assert found["suites"][kind]["passed"] > 30
    assert found["suites"]["pipeline"]["passed"] > 5
