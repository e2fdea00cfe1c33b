"""pytest plugin of the conformance suite: `pytest -p trident_conformance.plugin --pyargs
trident_conformance`.

It is loaded by name only (an entry point would load it in every pytest run of the machine). It adds the
options, and parametrises tests that ask for `parser_engine`, `book_engine`, `store_engine`, `query_engine`,
`sequence_engine` or `line_engines`; other tests are left alone.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from trident_conformance import evidence, known, sources
from trident_conformance.engines import KINDS, LINE, Engine, engines_of, lines_of, select
from trident_conformance.matrix import add_evidence, again, short
from trident_conformance.promises import lacking
from trident_conformance.proving import EXAMPLES, Prover
from trident_core.contracts import CONTRACT_VERSIONS, Kind
from trident_core.errors import PluginError, TridentError

pytest.register_assert_rewrite(
    *(f"trident_conformance.{name}" for name in ("drive", "damage", "stores", "sequences"))
)

_SELECTED: Final = pytest.StashKey[dict[Kind, list[Engine]]]()
#: What is wrong with all cases of an engine or a capability, and has been said by one that failed.
_TOLD: Final = pytest.StashKey[set[str]]()

_FIXTURES: Final = frozenset({*(f"{kind}_engine" for kind in KINDS), "line_engines"})


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("trident conformance")
    for kind in KINDS:
        group.addoption(
            f"--{kind}",
            metavar="NAME[,NAME…]",
            help=f"test these {kind} engines, by name or as module:Class[+capability…] (default: all)",
        )
    group.addoption(
        "--examples",
        type=int,
        metavar="N",
        help=f"random examples for each property (default: as many as it says, else {EXAMPLES})",
    )
    group.addoption(
        "--seed",
        type=int,
        metavar="N",
        help="other random examples, the same for the same N (default: the same in each run)",
    )
    group.addoption(
        "--example",
        metavar="EXAMPLE",
        help="of the --case: this random example first, as its failure printed it",
    )
    group.addoption(
        "--case",
        action="append",
        metavar="ID",
        help="only the case with this id, as failures print it; may be given again",
    )
    group.addoption(
        "--pairs",
        action="store_true",
        help="in the line: every two engines of different kinds together, not only each among references",
    )
    group.addoption(
        "--contract",
        metavar="MAJOR.MINOR",
        help="hold engines to this version of the contracts: rules that came later are left out",
    )
    group.addoption(
        "--known-failures",
        metavar="FILE",
        help="cases that are expected to fail: an id or pattern and `# reason` a line",
    )
    group.addoption(
        "--sample",
        action="append",
        default=[],
        metavar="FILE",
        help="a small input for the feeds under test, uncompressed; may be given again",
    )
    group.addoption("--quick", action="store_true", help="fewer random examples and smaller inputs")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs_capability(name): skip engines that do not declare it")
    config.addinivalue_line("markers", "places(kind, …): the places of the line that this test uses")
    config.addinivalue_line("markers", "since(version): a rule that this minor version brought")
    _contract(config)
    _samples(config)
    if config.getoption("example") and not config.getoption("case"):
        raise pytest.UsageError("--example is an example of a --case: give that, too")
    if any(config.getoption(str(kind)) for kind in KINDS):
        for engines in _selected(config).values():  # a wrong name must be said before anything runs
            for engine in engines:
                if reason := _unloadable(engine):
                    raise pytest.UsageError(f"the engine cannot be loaded: {reason}")


def _selected(config: pytest.Config) -> dict[Kind, list[Engine]]:
    """The engines to test, by kind; when some kind is chosen, kinds that are not chosen are left out."""
    if _SELECTED not in config.stash:
        chosen = {kind: config.getoption(str(kind)) for kind in KINDS}
        some = any(chosen.values())
        try:
            config.stash[_SELECTED] = {
                kind: select(kind, _names(text)) if text or not some else [] for kind, text in chosen.items()
            }
        except TridentError as error:
            raise pytest.UsageError(str(error)) from None
    return config.stash[_SELECTED]


@cache
def _unloadable(engine: Engine) -> str:
    """Why an engine cannot be loaded; empty when it can."""
    try:
        assert engine.factory is not None
    except PluginError as error:
        return str(error)
    return ""


def _contract(config: pytest.Config) -> tuple[int, int]:
    """The version of the contracts to hold engines to: today's unless --contract names an earlier one."""
    newest = max(CONTRACT_VERSIONS.values())
    text = config.getoption("contract")
    if text is None:
        return newest
    major, _, minor = text.partition(".")
    if not (major.isdecimal() and minor.isdecimal()):
        raise pytest.UsageError(f"--contract {text!r} is not a version (write 1.0)")
    wanted = int(major), int(minor)
    if wanted[0] != newest[0] or wanted > newest:
        known = f"{newest[0]}.0 to {newest[0]}.{newest[1]}"
        raise pytest.UsageError(f"--contract {text}: this suite knows {known}")
    return wanted


def _samples(config: pytest.Config) -> dict[str, bytes]:
    try:
        return sources.given(config.getoption("sample"))
    except OSError as error:
        raise pytest.UsageError(f"--sample: {error}") from None


def _names(text: str | None) -> list[str] | None:
    return [name.strip() for name in text.split(",") if name.strip()] if text else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The suites of kinds that were not chosen need not be read at all."""
    if collection_path.parent != Path(__file__).parent / "suites":
        return None
    kind = collection_path.stem.split("_")[1] if "_" in collection_path.stem else ""
    return True if kind in map(str, KINDS) and not _selected(config)[Kind(kind)] else None


def pytest_report_header(config: pytest.Config) -> str:
    shown = [
        f"{kind}={','.join(engine.name for engine in engines)}"
        for kind, engines in _selected(config).items()
        if engines
    ]
    how = "quick" if config.getoption("quick") else "full"
    return f"trident conformance ({how}): {' '.join(shown) or 'no engine'}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    for kind in KINDS:
        if f"{kind}_engine" in metafunc.fixturenames:
            engines = _selected(metafunc.config)[kind]
            metafunc.parametrize(f"{kind}_engine", engines, ids=[engine.label for engine in engines])
    if "line_engines" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("places")
        places = [Kind(name) for name in marker.args] if marker else LINE
        lines = lines_of(_selected(metafunc.config), pairs=metafunc.config.getoption("pairs"), places=places)
        ids = ["-".join(engine.label for engine in line.values()) for line in lines]
        metafunc.parametrize("line_engines", lines, ids=ids)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of kinds that were not chosen, rather than report each as skipped, and rules
    younger than --contract; mark known failures before -k takes some away."""
    version, wanted = _contract(config), config.getoption("case")
    left_out = [
        item
        for item in items
        if _has_no_engine(item) or _since(item) > version or (wanted and short(item.nodeid) not in wanted)
    ]
    if left_out:
        # Not reported as deselected: that is what -k does, and nobody asked for cases of other kinds.
        gone = set(map(id, left_out))
        items[:] = [item for item in items if id(item) not in gone]
    if wanted and len(items) < len(set(wanted)):
        there = {short(item.nodeid) for item in items}
        raise pytest.UsageError(f"no such case: {', '.join(case for case in wanted if case not in there)}")
    if config.getoption("known_failures"):
        known.mark(items, Path(config.getoption("known_failures")))


def _since(item: pytest.Item) -> tuple[int, int]:
    marker = item.get_closest_marker("since")
    if marker is None:
        return 1, 0
    major, minor = str(marker.args[0]).split(".")
    return int(major), int(minor)


def _has_no_engine(item: pytest.Item) -> bool:
    """A test parametrised over nothing has one instance in pytest, whose parameter is no engine."""
    params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    return any(name in _FIXTURES and not isinstance(value, (Engine, dict)) for name, value in params.items())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and engines_of(item) and call.excinfo:
        add_evidence(report, call.excinfo.value, again(item, evidence.example()))
    return report


def pytest_runtest_setup(item: pytest.Item) -> None:
    evidence.forget()
    for engine in engines_of(item):
        if engine.missing:
            pytest.skip(f"{engine.label} requires {', '.join(engine.missing)}: {engine.spec.install_hint}")
        if reason := _unloadable(engine):
            _fail_once(item, f"{engine.label} cannot be loaded", f"the engine cannot be loaded: {reason}")
    for marker in item.iter_markers("needs_capability"):
        for engine in engines_of(item):
            if not engine.declares(marker.args[0]):
                pytest.skip(f"{engine.label} does not declare the capability {marker.args[0]}")
            if words := lacking(engine, marker.args[0]):
                _fail_once(item, f"{engine.label} {words}", words)


def _fail_once(item: pytest.Item, what: str, reason: str) -> None:
    """Fail the first case that this concerns; skip the others."""
    told = item.config.stash.setdefault(_TOLD, set())
    if what in told:
        pytest.skip(f"{what}: see its failure")
    told.add(what)
    pytest.fail(reason, pytrace=False)


@pytest.fixture(scope="session")
def sample_files(pytestconfig: pytest.Config) -> dict[str, bytes]:
    """The files of --sample, by name."""
    return _samples(pytestconfig)


@pytest.fixture(scope="session")
def quick(pytestconfig: pytest.Config) -> bool:
    """Was --quick given?"""
    return bool(pytestconfig.getoption("quick"))


@pytest.fixture(scope="session")
def prove(pytestconfig: pytest.Config, quick: bool) -> Prover:
    """`prove(property, **strategies)`: hold a property against random examples."""
    option = pytestconfig.getoption
    return Prover(quick, option("examples"), option("seed"), option("example"))
