"""Discovery, quarantine and selection: a broken plugin takes down nothing but itself."""

from __future__ import annotations

import tomllib
import types
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from trident_core.cli import plugins as plugins_command
from trident_core.contracts import Capability, CommandSpec, EngineSpec, Kind
from trident_core.contracts.engine import OWN_MODULES
from trident_core.engines import ABILITIES, notes
from trident_core.errors import PluginError, UsageError
from trident_core.hookspecs import hookimpl
from trident_core.plugins import Registry, registry


def book(name: str, **changes: object) -> EngineSpec:
    values = {"kind": Kind.BOOK, "name": name, "factory": "json:loads", "summary": "a book"} | changes
    return EngineSpec(**values)  # type: ignore[arg-type]


def plugin(hook: Callable[[], object], name: str = "trident_register_books") -> types.ModuleType:
    module = types.ModuleType("stranger")
    hook.__name__ = name
    setattr(module, name, hookimpl(hook))
    return module


@pytest.fixture(autouse=True)
def _no_wishes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for kind in Kind:
        monkeypatch.delenv(f"TRIDENT_{kind.upper()}", raising=False)
    monkeypatch.chdir(tmp_path)


def reasons(found: Registry) -> str:
    return "\n".join(f"{q.plugin} {q.name}: {q.reason} | {q.hint}" for q in found.quarantine)


def test_every_built_in_engine_loads() -> None:
    found = registry()
    assert [q for q in found.quarantine if q.distribution == "trident-core"] == []
    for kind in (Kind.FEED, Kind.PARSER, Kind.BOOK, Kind.STORE, Kind.QUERY):
        assert found.engines(kind), kind
        for spec in found.engines(kind):
            assert callable(spec.load()), spec
    assert found.commands()


def test_a_plugin_whose_import_fails_is_quarantined_and_the_rest_load() -> None:
    found = Registry()
    found.add_entry_points(
        [
            EntryPoint("broken", "no_such_module_of_a_stranger", "trident"),
            EntryPoint("book", "trident_book.plugin", "trident"),
        ]
    )
    assert [spec.name for spec in found.engines(Kind.BOOK)] != []
    assert "no_such_module_of_a_stranger" in reasons(found)
    assert "install the missing module" in reasons(found)


@pytest.mark.parametrize(
    ("hook", "reason"),
    [
        (lambda: 1 / 0, "raised ZeroDivisionError"),
        (lambda: ["not a spec"], "instead of a EngineSpec"),
        (lambda: [book("x", kind=Kind.STORE)], "is of kind store"),
        (lambda: [book("with space")], "is not a name"),
        (lambda: [book("")], "is not a name"),
        (lambda: [book("x", contract=(2, 0))], "contract 2.0; this Trident has 1.0"),
        (lambda: [book("x", contract=(1, 9))], "contract 1.9; this Trident has 1.0"),
        (lambda: [book("x"), book("x")], "duplicate name: book 'x' is already registered by stranger"),
        (lambda: 7, "raised TypeError"),
    ],
    ids=["raises", "no spec", "kind", "space", "empty", "major", "minor", "duplicate", "no sequence"],
)
def test_a_bad_hook_is_quarantined_with_its_reason(hook: Callable[[], object], reason: str) -> None:
    found = Registry()
    found.add_plugin(plugin(hook), "bad", "stranger")
    found.add_plugin(plugin(lambda: [book("good")]), "good", "other")
    assert reason in reasons(found)
    assert "good" in [spec.name for spec in found.engines(Kind.BOOK)]


def test_an_unknown_hook_and_an_empty_module_are_quarantined() -> None:
    found = Registry()
    found.add_plugin(plugin(lambda: (), "trident_register_boooks"), "typo", "stranger")
    found.add_plugin(types.ModuleType("empty"), "empty", "stranger")
    assert "does not fit the hooks" in reasons(found)
    assert "implements no hook" in reasons(found)


def test_a_duplicate_names_both_sides_and_leaves_the_first() -> None:
    found = Registry()
    found.add_plugin(plugin(lambda: [book("mine", summary="first")]), "a", "alpha")
    found.add_plugin(plugin(lambda: [book("mine", summary="second")]), "b", "beta")
    assert found.select(Kind.BOOK, "mine").spec.summary == "first"
    (entry,) = found.quarantine
    assert entry.distribution == "beta"
    assert "alpha" in entry.reason


def test_selection_order_is_flag_environment_file_default(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = Registry()
    names = ("one", "two", "three", "reference")
    found.add_plugin(plugin(lambda: [book(name) for name in names]), "many", "stranger")

    def chosen(flag: str | None = None) -> tuple[str, str]:
        selection = found.select(Kind.BOOK, flag)
        return selection.spec.name, selection.origin

    assert chosen() == ("reference", "default")
    (tmp_path / "trident.toml").write_text('[engines]\nbook = "one"\n')
    assert chosen() == ("one", "trident.toml")
    monkeypatch.setenv("TRIDENT_BOOK", "two")
    assert chosen() == ("two", "TRIDENT_BOOK")
    assert chosen("three") == ("three", "--book")


def test_an_unknown_name_lists_those_installed() -> None:
    with pytest.raises(PluginError, match=r"no book engine named 'nope'.*installed: .*reference"):
        registry().select(Kind.BOOK, "nope")


def test_a_quarantined_engine_is_raised_with_its_cause_only_when_selected() -> None:
    found = Registry()
    found.add_entry_points([EntryPoint("broken", "no_such_module_of_a_stranger", "trident")])
    found.add_plugin(plugin(lambda: [book("good")]), "good", "other")
    assert found.select(Kind.BOOK).spec.name == "good"
    with pytest.raises(PluginError, match="quarantined: import failed") as caught:
        found.select(Kind.BOOK, "broken")
    assert isinstance(caught.value.__cause__, ModuleNotFoundError)


def test_a_factory_that_cannot_be_loaded_gives_the_install_hint() -> None:
    spec = book("x", factory="no_such_module:Book", install_hint="pip install the-missing-thing")
    with pytest.raises(PluginError, match="pip install the-missing-thing"):
        spec.load()


@pytest.mark.parametrize(
    "text", ["[engines\n", "book = 1\n", "[engines]\nboook = 'x'\n", "[engines]\nbook = 3\n", "\xff"]
)
def test_a_broken_trident_toml_is_a_usage_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "trident.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=r"trident\.toml"):
        registry().select(Kind.BOOK)


def test_commands_of_plugins_are_registered() -> None:
    found = Registry()
    spec = CommandSpec("hello", "json:loads", "says hello")
    found.add_plugin(plugin(lambda: [spec], "trident_register_commands"), "c", "stranger")
    assert found.commands() == [spec]


def test_engines_of_a_kind_by_its_name() -> None:
    assert registry().engines("store") == registry().engines(Kind.STORE) != []


def test_a_missing_module_of_trident_itself_is_not_the_plugins_fault() -> None:
    mine = book("mine", factory="trident_core.no_such_module:Book", install_hint="pip install mine")
    with pytest.raises(PluginError, match="its installation is not whole") as caught:
        mine.load()
    assert "pip install mine" not in caught.value.hint
    with pytest.raises(PluginError, match="is the package that provides trident_book_gone complete"):
        book("mine", factory="trident_book_gone:Book").load()
    found = Registry()
    found.add_entry_points([EntryPoint("x", "trident_core.no_such_module", "trident")])
    assert "trident_core.no_such_module would be a module of Trident itself" in reasons(found)


def test_own_modules_are_those_of_the_distribution() -> None:
    project = Path(__file__).parents[2] / "pyproject.toml"
    packages = tomllib.loads(project.read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert {package.rpartition("/")[2] for package in packages} == set(OWN_MODULES)


def test_unknown_capabilities_get_a_note_that_names_the_known_ones() -> None:
    mine = EngineSpec(Kind.QUERY, "mine", "a:B", "mine", capabilities=frozenset({"sets", "span"}))
    assert notes(mine) == [
        "declares span, which no query capability is called: known are ends, first, sets, spans"
    ]
    assert notes(EngineSpec(Kind.QUERY, "mine", "a:B", "mine", capabilities=frozenset({"sets"}))) == []
    assert {Capability(one) for known in ABILITIES.values() for one in known} == set(Capability)
    for registered in registry().registered():
        assert notes(registered.spec) == []


def test_notes_are_listed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    found = Registry()
    found.add_plugin(plugin(lambda: [book("mine", capabilities=frozenset({"shraded"}))]), "mine")
    monkeypatch.setattr(plugins_command, "registry", lambda: found)
    plugins_command.plugins()
    assert "note: book mine: declares shraded, which no book capability is called" in capsys.readouterr().out
