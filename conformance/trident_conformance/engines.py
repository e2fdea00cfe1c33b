"""Which engines are tested: by name from the registry, or by factory before they are registered at all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any, Final

from trident_core.contracts import EngineSpec, Kind
from trident_core.engines import missing_modules
from trident_core.errors import PluginError
from trident_core.plugins import registry

#: The kinds that have a suite.
KINDS: Final = (Kind.FEED, Kind.PARSER, Kind.BOOK, Kind.STORE, Kind.QUERY, Kind.SEQUENCE)
#: Those that have a place in the line, each with a reference.
LINE: Final = (Kind.PARSER, Kind.BOOK, Kind.STORE, Kind.QUERY)
REFERENCE: Final = "reference"
PROTOCOL: Final = "itch50"


@dataclass(frozen=True)
class Engine:
    """One engine under test. `missing` names modules it requires that are not installed."""

    spec: EngineSpec
    missing: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        return self.spec.kind

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def label(self) -> str:
        """As in test ids: book=reference."""
        return f"{self.kind}={self.name}"

    @property
    def factory(self) -> Any:
        """Its class. Raises PluginError when it cannot be loaded."""
        return _factory(self.spec)

    def make(self, *args: Any, **options: Any) -> Any:
        """A new engine: its factory, called. Raises PluginError when it cannot be loaded."""
        return self.factory(*args, **options)

    def declares(self, capability: str) -> bool:
        return capability in self.spec.capabilities


@cache
def _factory(spec: EngineSpec) -> Any:
    return spec.load()


def select(kind: Kind, names: Iterable[str] | None = None) -> list[Engine]:
    """The engines of `kind` to test, by name; None: every installed one (parsers: those that read ITCH 5.0).

    A name with a colon is a factory, `package.module:Class`, with the capabilities it declares behind plus
    signs: `mine.book:FastBook`, `mine.parser:Parser+tables+encode`. Raises PluginError for an unknown name.
    """
    installed = {spec.name: spec for spec in registry().engines(kind)}
    if names is None:
        chosen = [s for s in installed.values() if kind is not Kind.PARSER or PROTOCOL in s.protocols]
        return [Engine(spec, tuple(missing_modules(spec))) for spec in chosen]
    engines = []
    for name in names:
        if ":" in name:
            engines.append(Engine(_spec_of_factory(kind, name)))
        elif name in installed:
            engines.append(Engine(installed[name]))
        else:
            registry().select(kind, name)  # raises, and says why: unknown, or quarantined
    return engines


def reference(kind: Kind) -> Engine:
    """The engine that is the law for its kind. Raises PluginError when it is not installed."""
    return select(kind, [REFERENCE])[0]


def _spec_of_factory(kind: Kind, name: str) -> EngineSpec:
    factory, *capabilities = name.split("+")
    if not all(factory.partition(":")):
        raise PluginError(f"{factory!r} is not a factory", hint="write package.module:Class")
    protocols = (PROTOCOL,) if kind in (Kind.FEED, Kind.PARSER) else ()
    declared = frozenset(capabilities)
    summary = "given by its factory"
    return EngineSpec(kind, factory, factory, summary, capabilities=declared, protocols=protocols)


def lines_of(
    engines: dict[Kind, list[Engine]], *, pairs: bool = False, places: Iterable[Kind] = LINE
) -> list[dict[Kind, Engine]]:
    """Each engine of `engines` in one line with references in the other places, without repetitions; with
    `pairs` also every two engines of different kinds. Only the `places` that a test uses vary."""
    law = {kind: reference(kind) for kind in LINE}
    varied = [kind for kind in LINE if kind in places]
    ways: list[dict[Kind, Engine]] = [{kind: engine} for kind in varied for engine in engines[kind]]
    if pairs:
        ways += [
            {one: first, other: second}
            for one, other in combinations(varied, 2)
            for first in engines[one]
            for second in engines[other]
        ]
    found: list[dict[Kind, Engine]] = []
    for way in ways:
        if (line := law | way) not in found:
            found.append(line)
    return found


def engines_of(item: Any) -> list[Engine]:
    """The engines that a pytest item judges; in a line, those that are not references, or all if all are."""
    params: dict[str, Any] = getattr(getattr(item, "callspec", None), "params", {})
    line = params.get("line_engines")
    if isinstance(line, dict):
        return [engine for engine in line.values() if engine.name != REFERENCE] or list(line.values())
    return [engine for engine in params.values() if isinstance(engine, Engine)]
