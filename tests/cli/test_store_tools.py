"""The store tools at the command line: what a user does, in order, and what is said when it fails."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]
PAGE = (Path(__file__).parents[2] / "docs" / "store-tools.md").read_text()
PORTABLE = ("repair", "compact")


def lines_of(page: str) -> list[list[str]]:
    (block,) = re.findall(r"^```\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return [shlex.split(line)[1:] for line in block.splitlines()]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small store of the portable format, with tables."""
    from trident_store.tools.flips import small_store

    folder = tmp_path_factory.mktemp("small") / "store"
    folder.mkdir()
    for name, data in small_store().items():
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_commands_of_the_page_work_in_order(trident: Run, tmp_path: Path) -> None:
    said = {}
    for args in lines_of(PAGE):
        done = trident(*args)
        assert done.returncode == 0, (args, done.stderr)
        said[tuple(args)] = done.stdout
    assert "the digest that the run recorded" in " ".join(said["verify", "store", "--deep"].split())
    digests = [
        (tmp_path / name / "digests").read_text().split('"digest":"')[1][:64] for name in ("store", "third")
    ]
    assert digests[0] == digests[1]
    assert json.loads(trident("verify", "saved", "--json").stdout)["ok"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_store_of_another_engine_is_known_by_its_files(trident: Run, day: Path) -> None:
    pytest.importorskip("duckdb")
    assert trident("run", day, "s", "--store", "duckdb").returncode == 0
    verified = json.loads(trident("verify", "s", "--deep", "--json").stdout)
    assert verified["ok"]
    assert verified["book"]["compared_at_events"] == [6_000]
    assert "6,000 events" in trident("query", "s", "--count").stdout
    assert trident("recover", "s", "--dry-run").returncode == 0
    for command in PORTABLE:
        done = trident(command, "s")
        assert done.returncode == 2
        assert done.stderr.splitlines()[0].startswith("error: s is a store of duckdb")
        assert len(done.stderr.splitlines()) == 2
    assert "not known of duckdb's files" in trident("stats", "s").stdout
    assert trident("backup", "s", "b").returncode == 0
    assert trident("restore", "b", "again").returncode == 0
    assert json.loads(trident("salvage", "again", "saved", "--json").stdout)["complete"]
    assert json.loads(trident("verify", "saved", "--json").stdout)["events"] == 6_000


def test_damage_is_named_mended_or_salvaged_around(trident: Run, small: Path, tmp_path: Path) -> None:
    shutil.copytree(small, "s")
    (manifest,) = Path("s").glob("*.man")
    manifest.unlink()
    done = trident("verify", "s")
    assert done.returncode == 4
    assert "hint: `trident repair`" in done.stdout
    assert trident("repair", "s").returncode == 0
    table = sorted(Path("s").glob("*.tab"))[0]
    data = bytearray(table.read_bytes())
    data[100] ^= 1
    table.write_bytes(data)
    refused = trident("repair", "s")
    assert (refused.returncode, "left: " in refused.stdout) == (4, True)
    assert trident("recover", "s").returncode == 4
    done = trident("salvage", "s", "saved")
    assert done.returncode == 4
    assert "gaps" in done.stdout
    assert "salvaged from s" in trident("verify", "saved", "--quick").stdout
    assert trident("backup", "s", "b").returncode == 4


@pytest.mark.parametrize(
    ("args", "code", "said"),
    [
        (["recover", "nowhere"], 4, "there is no store at nowhere"),
        (["repair", "FILE"], 4, "is no folder"),
        (["dump", "nowhere"], 4, "there is no nowhere"),
        (["backup", "STORE", "FILE"], 2, "FILE is no folder"),
        (["restore", "STORE", "new"], 4, "is no backup"),
        (["export", "STORE", "FILE", "--format", "csv"], 2, "exists already"),
        (["export", "STORE", "out.xml"], 2, "no format 'xml'"),
        (["salvage", "STORE", "STORE"], 2, "exists already"),
    ],
)
def test_one_line_of_what_and_one_of_what_to_do(
    trident: Run, small: Path, tmp_path: Path, args: list[str], code: int, said: str
) -> None:
    Path("FILE").write_text("mine")
    shutil.copytree(small, "STORE")
    done = trident(*args)
    assert done.returncode == code, done.stderr
    lines = [line for line in done.stderr.splitlines() if not line.startswith("compiling")]
    assert [line.partition(":")[0] for line in lines] == ["error", "hint"], done.stderr
    assert said in lines[0]
    assert Path("FILE").read_text() == "mine"
