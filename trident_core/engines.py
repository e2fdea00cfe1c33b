"""Making engines, and holding what their factories made against the outline of the contract."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from trident_core import contracts
from trident_core.contracts import Capability, CommandSpec, EngineSpec, Kind
from trident_core.errors import PluginError, TridentError

if TYPE_CHECKING:
    from trident_core.session import Session

#: What an engine of each kind satisfies.
PROTOCOLS: Final[Mapping[Kind, type]] = {
    Kind.FEED: contracts.Feed,
    Kind.PARSER: contracts.Parser,
    Kind.BOOK: contracts.Book,
    Kind.STORE: contracts.Store,
    Kind.QUERY: contracts.Query,
    Kind.SEQUENCE: contracts.Sequences,
}
#: What an engine must satisfy besides when it declares a capability.
DECLARED: Final[Mapping[tuple[Kind, str], type]] = {
    (Kind.PARSER, Capability.TABLES): contracts.TableParser,
    (Kind.PARSER, Capability.ENCODE): contracts.Encoder,
    (Kind.BOOK, Capability.MATCH): contracts.MatchingBook,
}
#: The capabilities that mean something for a kind. A plugin may declare words of its own; nothing heeds them.
ABILITIES: Final[Mapping[Kind, frozenset[str]]] = {
    Kind.FEED: frozenset({Capability.LENIENT}),
    Kind.PARSER: frozenset({Capability.ENCODE, Capability.TABLES, Capability.LENIENT}),
    Kind.BOOK: frozenset({Capability.SHARDED, Capability.MATCH}),
    Kind.STORE: frozenset({Capability.PORTABLE_FORMAT, Capability.FILESYSTEM}),
    Kind.QUERY: frozenset({Capability.SPANS, Capability.FIRST, Capability.ENDS, Capability.SETS}),
    Kind.SEQUENCE: frozenset({Capability.STREAMING}),
    Kind.COMMAND: frozenset(),
}
#: What the summary of a plugin that `trident new-plugin` wrote ends with, until somebody writes a better one.
UNFILLED: Final = "that is yet to be filled in"


def notes(spec: EngineSpec | CommandSpec) -> list[str]:
    """What is odd about a spec although it can be used, a sentence each."""
    made = []
    if isinstance(spec, EngineSpec):
        known = ABILITIES[spec.kind]
        unknown = sorted({str(one) for one in spec.capabilities} - known)
        if unknown:
            made.append(
                f"declares {', '.join(unknown)}, which no {spec.kind} capability is called: known are "
                f"{', '.join(sorted(map(str, known))) or 'none'}"
            )
    if str(spec.summary).endswith(UNFILLED):
        made.append(f'its summary is still "{spec.summary}": write in plugin.py what it is')
    return made


def members(protocol: type) -> list[str]:
    """The public names that a Protocol demands, and `__iter__` where it is one of them."""
    names = {*vars(protocol), *vars(protocol).get("__annotations__", {})}
    return sorted(name for name in names if not name.startswith("_") or name == "__iter__")


def make(spec: EngineSpec, *arguments: Any, **options: Any) -> Any:
    """An engine: what the factory of `spec` makes of these arguments.

    Raises PluginError when the factory cannot be loaded or called, or what it makes lacks a method of the
    contract; TridentError and OSError as the factory does.
    """
    factory = spec.load()
    try:
        engine = factory(*arguments, **options)
    except (TridentError, OSError):
        raise
    except Exception as error:  # a stranger's code
        raise PluginError(
            f"{spec.kind} engine {spec.name!r} cannot be made: {spec.factory} raised {error!r}",
            hint=f"how a factory is called: trident_core.contracts.{PROTOCOLS[spec.kind].__name__}",
        ) from error
    _hold(spec, engine, PROTOCOLS[spec.kind])
    for (kind, ability), wanted in DECLARED.items():
        if kind is spec.kind and ability in spec.capabilities:
            _hold(spec, engine, wanted)
    return engine


def make_matcher(spec: EngineSpec, session: Session, rules: contracts.MarketRules) -> contracts.Matcher:
    """A market on a book engine that declares MATCH.

    Raises PluginError when it does not, when it cannot be made, or when a method of the contract is missing.
    """
    if Capability.MATCH not in spec.capabilities:
        raise PluginError(
            f"book engine {spec.name!r} does not match orders",
            hint=f"`trident plugins` shows which declare the capability {Capability.MATCH}",
        )
    try:
        matcher = spec.load().matcher(session, rules)
    except TridentError:
        raise
    except Exception as error:  # a stranger's code
        raise PluginError(
            f"book engine {spec.name!r}: no market can be made, {spec.factory} raised {error!r}",
            hint="how one is made: trident_core.contracts.MatchingBook",
        ) from error
    _hold(spec, matcher, contracts.Matcher)
    return matcher  # type: ignore[no-any-return]


def _hold(spec: EngineSpec, engine: Any, protocol: type) -> None:
    """Against the outline of the contract."""
    missing = [name for name in members(protocol) if not _has(engine, name)]
    if missing:
        raise PluginError(
            f"{spec.kind} engine {spec.name!r}: {spec.factory} made a {type(engine).__name__}, "
            f"which has no {', '.join(missing[:6])}{' …' if len(missing) > 6 else ''}",
            hint=f"it must satisfy trident_core.contracts.{protocol.__name__}; "
            "`trident conform` tells the rest",
        )


def _has(engine: Any, name: str) -> bool:
    """Without asking for it: a property may refuse (a damaged store's session) or cost something."""
    nothing = object()
    return inspect.getattr_static(engine, name, nothing) is not nothing


def missing_modules(spec: EngineSpec) -> list[str]:
    """The modules in `spec.requires` that are not installed."""
    return [module for module in spec.requires if not _installed(module)]


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):  # its parent is not there, or is broken
        return False
