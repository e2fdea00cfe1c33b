"""Plugins broken in every way, installed as packages are: listed with their reason, in nobody's way."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from trident_core.cli.simulated import simulate_day
from trident_core.strangers import REMEMBERED, LatePlugins

_BOOK = "EngineSpec(kind=Kind.BOOK, name={name!r}, factory={factory!r}, summary='a book'{more})"


def _module(*specs: str, hook: str = "trident_register_books", before: str = "") -> str:
    return (
        "from trident_core.contracts import CommandSpec, EngineSpec, Kind\n"
        "from trident_core.hookspecs import hookimpl\n"
        f"{before}\n@hookimpl\ndef {hook}():\n    return [{', '.join(specs)}]\n"
    )


def _book(name: str, factory: str = "trident_book.reference:ReferenceBook", more: str = "") -> str:
    return _BOOK.format(name=name, factory=factory, more=more)


#: name of the distribution -> its module, and what `trident plugins` must say of it.
BAD: Mapping[str, tuple[str, str]] = {
    "import-error": ("raise ValueError('out of order')", "import failed: ValueError('out of order')"),
    "missing-import": ("import no_such_dependency", "install the missing module 'no_such_dependency'"),
    "exits": ("import sys; sys.exit(3)", "import failed: SystemExit(3)"),
    "syntax": ("def f(:", "import failed: SyntaxError"),
    "no-hooks": ("x = 1", "implements no hook of Trident"),
    "hook-typo": (_module(_book("x"), hook="trident_register_boooks"), "does not fit the hooks"),
    "hook-raises": (_module("1 / 0"), "trident_register_books raised ZeroDivisionError"),
    "wrong-kind": (
        _module(_book("w").replace("Kind.BOOK", "Kind.STORE")),
        "'w' is of kind store but came from",
    ),
    "wrong-major": (
        _module(_book("m", more=", contract=(9, 0)")),
        "made for book contract 9.0; this Trident has",
    ),
    "duplicate": (_module(_book("reference")), "already registered by trident-core"),
    "spaces": (_module(_book("my book")), "'my book' is not a name"),
    "no-spec": (_module("'a book'"), "returned 'a book' instead of a EngineSpec"),
    "command-taken": (
        _module("CommandSpec('run', 'json:loads', 'mine')", hook="trident_register_commands"),
        "command 'run' is built in",
    ),
    "needs-more": (
        _module(_book("needy", more=", requires=('no_such_dependency',), install_hint='pip install it'")),
        "requires no_such_dependency; pip install it",
    ),
    "talks": (_module(_book("talker"), before="print('hello from a plugin')"), ""),
    "good": (_module(_book("fine")), ""),
}
#: Engines that are registered, and fail when they are selected.
LATE: Mapping[str, tuple[str, str]] = {
    "wrong-thing": (_module(_book("number", "my_late:number")), "made a int, which has no anomalies, apply"),
    "half": (_module(_book("half", "my_late:Half")), "made a Half, which has no anomalies, digest"),
    "raises": (_module(_book("raiser", "my_late:raises")), "cannot be made: my_late:raises raised KeyError"),
    "absent": (_module(_book("absent", "my_late:gone")), "cannot be loaded from my_late:gone"),
}
_LATE_MODULE = """
def number(session): return 7
def raises(session): raise KeyError('x')
class Half:
    def __init__(self, session): self.session = session
    def apply(self, events, tops=None, effects=None): return len(events)
"""


def install(site: Path, name: str, source: str) -> None:
    """A distribution with one module behind one entry point, as pip would leave it."""
    module = "plugin_" + name.replace("-", "_")
    (site / f"{module}.py").write_text(source)
    info = site / f"{name.replace('-', '_')}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text(f"[trident]\n{name} = {module}\n")


Trident = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    made = tmp_path / "site"
    made.mkdir()
    return made


@pytest.fixture
def trident(site: Path, tmp_path: Path) -> Trident:
    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "trident_core.cli", *arguments],
            capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False,
            env={
                "NUMBA_CACHE_DIR": str(Path.home() / ".cache" / "trident" / "numba"), **os.environ,
                "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]),
                "XDG_CACHE_HOME": str(tmp_path / "cache"), **variables,
            },
        )  # fmt: skip

    return run


def rows(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_each_is_listed_with_its_reason_and_breaks_nothing(
    site: Path, trident: Trident, tmp_path: Path
) -> None:
    for name, (source, _) in BAD.items():
        install(site, name, source)
    listed = rows(trident("plugins", "--json"))
    assert {"feed", "parser", "book", "store", "query"} <= {row["kind"] for row in listed}
    for name, (_, said) in BAD.items():
        (row,) = [row for row in listed if row["distribution"] == name]
        assert row["version"] == "1.2"
        wanted = "unavailable" if name == "needs-more" else "quarantined" if said else "ok"
        assert (name, row["status"]) == (name, wanted)
        assert said in f"{row['reason']}; {row['hint']}", row
    table = trident("plugins").stdout
    assert "quarantined" in table
    assert "hello from a plugin" not in table
    simulate_day(tmp_path / "day", messages=2_000, symbols=6)
    done = trident("replay", "day", "--book", "fine", "--parser", "reference", "--json")
    assert json.loads(done.stdout)["engines"]["book"] == "fine"
    assert trident("--help").returncode == 0
    refused = trident("replay", "day", "--book", "exits", "--parser", "reference")
    said_of_it = [line for line in refused.stderr.splitlines() if line != "hello from a plugin"]
    assert (refused.returncode, len(said_of_it)) == (5, 2)
    assert "quarantined: import failed: SystemExit(3)" in refused.stderr


def test_an_engine_that_is_no_engine_fails_only_when_selected(
    site: Path, trident: Trident, tmp_path: Path
) -> None:
    (site / "my_late.py").write_text(_LATE_MODULE)
    for name, (source, _) in LATE.items():
        install(site, name, source)
    simulate_day(tmp_path / "day", messages=2_000, symbols=6)
    assert trident("info", "day").returncode == 0
    for source, said in LATE.values():
        name = re.search(r"name='(\w+)'", source)
        assert name
        done = trident("replay", "day", "--book", name[1], "--parser", "reference")
        assert done.returncode == 5, done.stderr
        assert said in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "how",
    ["sleeps", pytest.param("loops", marks=pytest.mark.slow), pytest.param("hook", marks=pytest.mark.slow)],
)
def test_one_that_hangs_is_left_behind(how: str, site: Path, trident: Trident) -> None:
    source = {
        "sleeps": "import time; time.sleep(1000)",
        "loops": "while True: pass",
        "hook": _module("__import__('time').sleep(1000)"),
    }[how]
    install(site, "hangs", source)
    install(site, "zebra", _module(_book("striped")))
    began = time.monotonic()
    done = trident("plugins", "--json")
    assert time.monotonic() - began < 60
    (row,) = [row for row in rows(done) if row["distribution"] == "hangs"]
    assert row["status"] == "quarantined"
    assert "did not return within 5 s" in row["reason"]
    assert "note: plugin 'hangs'" in done.stderr
    assert [row["status"] for row in rows(done) if row["name"] == "striped"] == ["ok"]
    told = trident("--help").stdout
    assert "Not loaded in time: hangs" in " ".join(told.split())


@pytest.mark.slow
def test_one_that_hangs_costs_its_seconds_once(site: Path, trident: Trident, tmp_path: Path) -> None:
    install(
        site,
        "hangs",
        "import os, time\nif 'MENDED' not in os.environ: time.sleep(1000)\n" + _module(_book("b")),
    )
    simulate_day(tmp_path / "day", messages=2_000, symbols=6)
    first, second = trident("info", "day"), trident("info", "day")
    assert (first.returncode, second.returncode) == (0, 0)
    assert "note: plugin 'hangs' of hangs: import did not return within 5 s; " in first.stderr
    assert "did not return within 5 s before, nor now; `trident plugins` waits for it again" in second.stderr
    (tmp_path / "cache" / "trident" / "late-plugins.json").read_text().index("hangs 1.2 plugin_hangs")
    assert [
        row["status"] for row in rows(trident("plugins", "--json", MENDED="1")) if row["name"] == "b"
    ] == ["ok"]
    assert json.loads((tmp_path / "cache" / "trident" / "late-plugins.json").read_text()) == []


@pytest.mark.parametrize("text", ["", "{}", "[1, null]", "\0", None])
def test_a_memory_of_late_plugins_that_is_damaged_is_none(
    text: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    path = tmp_path / "trident" / "late-plugins.json"
    path.parent.mkdir()
    path.mkdir() if text is None else path.write_text(text)
    late = LatePlugins()
    assert "x" not in late
    late.note("x", late=True)
    assert "x" in late
    assert ("x" in LatePlugins()) == (text is not None)


def test_few_late_plugins_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    late = LatePlugins()
    for number in range(REMEMBERED + 5):
        late.note(f"p{number}", late=True)
    again = LatePlugins()
    assert [f"p{number}" in again for number in (4, 5, REMEMBERED + 4)] == [False, True, True]


def test_help_imports_neither_numba_nor_numpy_and_does_not_wait(site: Path, trident: Trident) -> None:
    install(site, "hangs", "import time; time.sleep(1000)")
    done = trident("--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    modules = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not modules & {"numba", "llvmlite", "pyarrow", "rich"}
    from trident_core.cli.main import HELP_WAITS_S

    assert (
        HELP_WAITS_S <= 0.2
    )  # of the 0.3 s that help may take in all; `trident bench latency` is no judge of it


def test_only_the_plugins_allowed_are_loaded(site: Path, trident: Trident) -> None:
    marker = site / "loaded"
    install(site, "one", _module(_book("first")))
    install(site, "two", _module(_book("second"), before=f"open({str(marker)!r}, 'w').close()"))
    found = {row["name"]: row for row in rows(trident("plugins", "--json", TRIDENT_PLUGINS="one, other"))}
    assert found["first"]["status"] == "ok"
    assert found["two"]["status"] == "left out"
    for arguments in (("--no-plugins", "plugins", "--json"), ("plugins", "--json", "--no-plugins")):
        found = {row["name"]: row for row in rows(trident(*arguments))}
        assert [found[name]["status"] for name in ("one", "two")] == ["left out"] * 2
        assert found["reference"]["status"] == "ok"
    assert not marker.exists()
    done = trident("replay", "-", "--book", "second", TRIDENT_PLUGINS="one")
    assert "left out by TRIDENT_PLUGINS or --no-plugins: two" in done.stderr or done.returncode == 3


def test_choosing_a_built_in_engine_loads_no_stranger(site: Path) -> None:
    install(site, "hangs", "import time; time.sleep(1000)")
    code = (
        "import sys\nfrom trident_core.plugins import registry\nfrom trident_core.contracts import Kind\n"
        "for kind in (Kind.PARSER, Kind.BOOK, Kind.STORE, Kind.QUERY):\n    registry().select(kind)\n"
        "sys.exit('plugin_hangs' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(site)}, timeout=60, check=False
    )
    assert done.returncode == 0
