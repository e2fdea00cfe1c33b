"""Discovery, quarantine and selection of plugins.

Entry points of the group `trident` are walked one at a time, so that a broken plugin takes down nothing but
itself: it is quarantined with its reason and the rest load. Plugins of strangers are loaded when somebody
asks for what the project's own do not have, each within a time limit.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import pluggy

from trident_core import hookspecs
from trident_core.cli.names import COMMANDS
from trident_core.config import DEFAULTS, configured
from trident_core.contracts import CONTRACT_VERSIONS, CommandSpec, EngineSpec, Kind
from trident_core.contracts.engine import not_whole
from trident_core.engines import make, missing_modules
from trident_core.errors import PluginError
from trident_core.strangers import Budget, LatePlugins, TookTooLongError

GROUP: Final = "trident"
OWN_DISTRIBUTION: Final = "trident-core"
#: Names of plugins or distributions, with commas: of the strangers' plugins only these are loaded.
ALLOWED_VARIABLE: Final = "TRIDENT_PLUGINS"

_HOOKS: Final = {
    Kind.FEED: "trident_register_feeds",
    Kind.PARSER: "trident_register_parsers",
    Kind.BOOK: "trident_register_books",
    Kind.STORE: "trident_register_stores",
    Kind.QUERY: "trident_register_queries",
    Kind.SEQUENCE: "trident_register_sequences",
    Kind.COMMAND: "trident_register_commands",
}
#: What a name of an engine or a command may be, and the same in words.
NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
NAMES_ARE: Final = (
    "names are lower-case letters, digits, '-', '_' and '.', at most 64, the first a letter or digit"
)

Spec = EngineSpec | CommandSpec


@dataclass(frozen=True, slots=True)
class Registered:
    """A spec and the distribution it came from."""

    spec: Spec
    plugin: str
    distribution: str
    version: str


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A plugin, or one engine of it, that cannot be used, and why."""

    plugin: str
    distribution: str
    version: str
    reason: str
    hint: str
    kind: str = ""
    name: str = ""
    error: BaseException | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Selection:
    """A selected engine and where the choice came from."""

    spec: EngineSpec
    origin: str

    def load(self) -> Any:
        """The engine's class. Raises PluginError."""
        return self.spec.load()

    def make(self, *arguments: Any, **options: Any) -> Any:
        """An engine; raises as `trident_core.engines.make`."""
        return make(self.spec, *arguments, **options)


class Registry:
    """All plugins of this process: what can be used and what is quarantined."""

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager(hookspecs.PROJECT)
        self.manager.add_hookspecs(hookspecs)
        self.left_out: list[EntryPoint] = []
        self._quarantine: list[Quarantined] = []
        self._registered: dict[tuple[Kind, str], Registered] = {}
        self._waiting: list[EntryPoint] = []

    # --- discovery

    def add_entry_points(self, points: Iterable[EntryPoint], allowed: frozenset[str] | None = None) -> None:
        """Load the project's own entry points; keep the others, by distribution and name, until they are
        asked for. Of those only `allowed`, by name of the entry point or distribution; None means all."""

        def order(point: EntryPoint) -> tuple[str, str]:
            return _distribution(point)[0], point.name

        for point in sorted(points, key=order):
            distribution, version = _distribution(point)
            if distribution == OWN_DISTRIBUTION:
                self._load(point, distribution, version, None)
            elif allowed is None or allowed & {point.name, distribution}:
                self._waiting.append(point)
            else:
                self.left_out.append(point)

    def complete(self, budget: Budget | None = None, *, patient: bool = False) -> None:
        """Load the strangers' plugins, if that has not been done; what is not there in time is put aside.

        One that was late in an earlier run gets little time, unless `patient`."""
        points, self._waiting = self._waiting, []
        if not points:
            return
        budget, late = budget or Budget(), LatePlugins()
        for point in points:
            distribution, version = _distribution(point)
            key = f"{distribution} {version} {point.value}"
            own = budget.for_one_that_was_late() if key in late and not patient else budget
            before = len(self._quarantine)
            self._load(point, distribution, version, own)
            hung = any(isinstance(e.error, TookTooLongError) for e in self._quarantine[before:])
            if not hung or own.waits_long:  # help hardly waits: it cannot tell
                late.note(key, late=hung)

    def _load(self, point: EntryPoint, distribution: str, version: str, budget: Budget | None) -> None:
        try:
            plugin = budget.call(point.load) if budget else point.load()
        except TookTooLongError as error:
            self._put_aside(
                point.name, distribution, version, f"import {error}",
                hint=f"its module must import nothing slow; {ALLOWED_VARIABLE} can leave it out", error=error,
            )  # fmt: skip
        except BaseException as error:  # even SystemExit in a stranger's module must not end us
            if isinstance(error, KeyboardInterrupt):
                raise
            self._put_aside(
                point.name, distribution, version, f"import failed: {error!r}",
                hint=_import_hint(error, distribution), error=error,
            )  # fmt: skip
        else:
            self.add_plugin(plugin, point.name, distribution, version, budget)

    def add_plugin(
        self, plugin: object, name: str, distribution: str = "(local)", version: str = "",
        budget: Budget | None = None,
    ) -> None:  # fmt: skip
        """Register one plugin object or module and collect its specs; quarantine what is wrong with it."""
        try:
            self.manager.register(plugin, name=f"{distribution}:{name}")
            self.manager.check_pending()
        except Exception as error:  # pluggy raises ValueError and PluginValidationError, both with a reason
            self.manager.unregister(plugin) if self.manager.is_registered(plugin) else None
            self._put_aside(
                name, distribution, version, f"does not fit the hooks: {error}",
                hint="its hooks must have the names and arguments of trident_core.hookspecs", error=error,
            )  # fmt: skip
            return
        found = 0
        for kind, hook_name in _HOOKS.items():
            for implementation in getattr(self.manager.hook, hook_name).get_hookimpls():
                if implementation.plugin is plugin:
                    found += 1
                    self._collect(kind, implementation.function, name, distribution, version, budget)
        if not found:
            self._put_aside(
                name, distribution, version, "implements no hook of Trident",
                hint="mark a function such as trident_register_books with trident_core.hookspecs.hookimpl",
            )  # fmt: skip

    def _collect(
        self, kind: Kind, hook: Callable[[], Any], plugin: str, distribution: str, version: str,
        budget: Budget | None,
    ) -> None:  # fmt: skip
        """Call one hook of one plugin and take its specs, each judged on its own."""

        def ask() -> list[Any]:
            return list(hook() or ())

        try:
            specs = budget.call(ask) if budget else ask()
        except TookTooLongError as error:
            self._put_aside(
                plugin, distribution, version, f"{_HOOKS[kind]} {error}",
                hint="the plugin's author should mend its hook", kind=kind, error=error,
            )  # fmt: skip
            return
        except BaseException as error:  # a stranger's code
            if isinstance(error, KeyboardInterrupt):
                raise
            self._put_aside(
                plugin, distribution, version, f"{_HOOKS[kind]} raised {error!r}",
                hint="the plugin's author should mend its hook", kind=kind, error=error,
            )  # fmt: skip
            return
        for spec in specs:
            reason, hint = self._refusal(kind, spec)
            if reason:
                self._put_aside(
                    plugin, distribution, version, reason, hint=hint, kind=kind,
                    name=str(getattr(spec, "name", "")),
                )  # fmt: skip
            else:
                self._registered[kind, spec.name] = Registered(spec, plugin, distribution, version)

    def _refusal(self, kind: Kind, spec: Any) -> tuple[str, str]:
        """Why a spec cannot be registered, and a hint; two empty strings when it can."""
        wanted = CommandSpec if kind is Kind.COMMAND else EngineSpec
        if not isinstance(spec, wanted):
            return f"returned {spec!r} instead of a {wanted.__name__}", ""
        if spec.kind is not kind:
            return f"{spec.name!r} is of kind {spec.kind} but came from {_HOOKS[kind]}", ""
        if not NAME.fullmatch(spec.name):
            return f"{spec.name!r} is not a name", NAMES_ARE
        major, minor = CONTRACT_VERSIONS[kind]
        if spec.contract[0] != major or spec.contract[1] > minor:
            theirs = ".".join(map(str, spec.contract))
            return (
                f"{spec.name!r} is made for {kind} contract {theirs}; this Trident has {major}.{minor}",
                "install a version of the plugin, or of trident-core, that fits the other",
            )
        if kind is Kind.COMMAND and spec.name in COMMANDS:
            return f"command {spec.name!r} is built in", "the plugin's command must be renamed"
        other = self._registered.get((kind, spec.name))
        if other:
            return (
                f"duplicate name: {kind} {spec.name!r} is already registered by {other.distribution} "
                f"(plugin {other.plugin!r})",
                "one of the two must be renamed or uninstalled",
            )
        return "", ""

    def _put_aside(
        self, plugin: str, distribution: str, version: str, reason: str, *, hint: str,
        kind: str = "", name: str = "", error: BaseException | None = None,
    ) -> None:  # fmt: skip
        entry = Quarantined(plugin, distribution, version, reason, hint, str(kind), name, error)
        self._quarantine.append(entry)

    # --- answers

    @property
    def quarantine(self) -> list[Quarantined]:
        """What cannot be used, and why."""
        self.complete()
        return self._quarantine

    @property
    def gave_up_on(self) -> list[Quarantined]:
        """Plugins that were waited for in vain, so far."""
        return [entry for entry in self._quarantine if isinstance(entry.error, TookTooLongError)]

    def registered(self, kind: Kind | str | None = None) -> list[Registered]:
        """What is registered, by kind and name."""
        self.complete()
        order = list(Kind)
        kind = None if kind is None else Kind(kind)
        found = [r for (k, _), r in self._registered.items() if kind is None or k is kind]
        return sorted(found, key=lambda r: (order.index(r.spec.kind), r.spec.name))

    def is_own(self, kind: Kind, name: str) -> bool:
        """Is there an engine of the project itself of this name? No stranger is asked."""
        found = self._registered.get((kind, name))
        return found is not None and found.distribution == OWN_DISTRIBUTION

    def engines(self, kind: Kind | str) -> list[EngineSpec]:
        return [r.spec for r in self.registered(kind) if isinstance(r.spec, EngineSpec)]

    def commands(self) -> list[CommandSpec]:
        return [r.spec for r in self.registered(Kind.COMMAND) if isinstance(r.spec, CommandSpec)]

    def select(self, kind: Kind | str, flag: str | None = None) -> Selection:
        """The engine to use for `kind`: flag > environment > trident.toml > default.

        Raises PluginError for a name that is not installed (naming those that are) or quarantined (with the
        reason, chained to its traceback). The project's own engines come first, so that choosing one of them
        loads nothing else.
        """
        kind = Kind(kind)
        choice = configured(kind, flag)
        for name in [choice.name] if choice.name else DEFAULTS.get(kind, ()):
            own = self._registered.get((kind, name))
            if own and isinstance(own.spec, EngineSpec) and (choice.name or not missing_modules(own.spec)):
                return Selection(own.spec, choice.origin)
        names = {spec.name: spec for spec in self.engines(kind)}
        if choice.name is None:
            for name in (*DEFAULTS.get(kind, ()), *names):
                if name in names and not missing_modules(names[name]):
                    return Selection(names[name], choice.origin)
            raise PluginError(f"no {kind} engine is installed", hint="reinstall trident-core")
        if choice.name in names:
            return Selection(names[choice.name], choice.origin)
        for entry in self._quarantine:
            if (choice.name == entry.name and entry.kind == kind) or choice.name in (
                entry.plugin, entry.distribution,
            ):  # fmt: skip
                raise PluginError(
                    f"{kind} engine {choice.name!r} (by {choice.origin}) is quarantined: {entry.reason}",
                    hint=entry.hint,
                ) from entry.error
        installed = ", ".join(sorted(names)) or "none"
        hint = f"installed: {installed}"
        if self._quarantine:
            hint += f"; {len(self._quarantine)} quarantined, see `trident plugins`"
        if self.left_out:
            names_left = ", ".join(point.name for point in self.left_out)
            hint += f"; left out by {ALLOWED_VARIABLE} or --no-plugins: {names_left}"
        raise PluginError(f"no {kind} engine named {choice.name!r} (by {choice.origin})", hint=hint)


def _distribution(point: EntryPoint) -> tuple[str, str]:
    """Name and version of the distribution that an entry point belongs to."""
    return (point.dist.name, point.dist.version) if point.dist else ("(unknown)", "")


def _import_hint(error: BaseException, distribution: str) -> str:
    if hint := not_whole(error):
        return hint
    if isinstance(error, ModuleNotFoundError):
        return f"install the missing module {error.name!r}, or reinstall {distribution}"
    return f"reinstall or remove {distribution}"


@cache
def registry() -> Registry:
    """The registry of the installed plugins, made at the first call."""
    made = Registry()
    made.add_entry_points(entry_points(group=GROUP), _allowed())
    return made


def _allowed() -> frozenset[str] | None:
    """The names in TRIDENT_PLUGINS; None where it is not set: all plugins."""
    text = os.environ.get(ALLOWED_VARIABLE)
    return None if text is None else frozenset(name.strip() for name in text.split(",") if name.strip())
