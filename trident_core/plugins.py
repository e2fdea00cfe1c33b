"""Discovery, quarantine and selection of plugins.

Entry points of the group `trident` are walked one at a time, so that a broken plugin takes down nothing but
itself: it is quarantined with its reason and the rest load.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import pluggy

from trident_core import hookspecs
from trident_core.config import DEFAULTS, configured
from trident_core.contracts import CONTRACT_VERSIONS, CommandSpec, EngineSpec, Kind
from trident_core.errors import PluginError

GROUP: Final = "trident"
OWN_DISTRIBUTION: Final = "trident-core"

_HOOKS: Final = {
    Kind.FEED: "trident_register_feeds",
    Kind.PARSER: "trident_register_parsers",
    Kind.BOOK: "trident_register_books",
    Kind.STORE: "trident_register_stores",
    Kind.QUERY: "trident_register_queries",
    Kind.COMMAND: "trident_register_commands",
}
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")

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
        return self.spec.load()


class Registry:
    """All plugins of this process: what can be used and what is quarantined."""

    def __init__(self) -> None:
        self.manager = pluggy.PluginManager(hookspecs.PROJECT)
        self.manager.add_hookspecs(hookspecs)
        self.quarantine: list[Quarantined] = []
        self._registered: dict[tuple[Kind, str], Registered] = {}

    # --- discovery

    def add_entry_points(self, points: Iterable[EntryPoint]) -> None:
        """Load each entry point on its own; the project's own first, then by distribution and name."""

        def order(point: EntryPoint) -> tuple[bool, str, str]:
            distribution = _distribution(point)[0]
            return distribution != OWN_DISTRIBUTION, distribution, point.name

        for point in sorted(points, key=order):
            distribution, version = _distribution(point)
            try:
                plugin = point.load()
            except BaseException as error:  # even SystemExit in a stranger's module must not end us
                if isinstance(error, KeyboardInterrupt):
                    raise
                self._put_aside(
                    point.name, distribution, version, f"import failed: {error!r}",
                    hint=_import_hint(error, distribution), error=error,
                )  # fmt: skip
                continue
            self.add_plugin(plugin, point.name, distribution, version)

    def add_plugin(self, plugin: object, name: str, distribution: str = "(local)", version: str = "") -> None:
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
                    self._collect(kind, implementation.function, name, distribution, version)
        if not found:
            self._put_aside(
                name, distribution, version, "implements no hook of Trident",
                hint="decorate a function such as trident_register_books with trident_core.hookimpl",
            )  # fmt: skip

    def _collect(
        self, kind: Kind, hook: Callable[[], Any], plugin: str, distribution: str, version: str
    ) -> None:
        """Call one hook of one plugin and take its specs, each judged on its own."""
        try:
            specs = list(hook() or ())
        except Exception as error:  # a stranger's code
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
        if not _NAME.fullmatch(spec.name):
            return f"{spec.name!r} is not a name", "names are lower-case letters, digits, '-', '_' and '.'"
        major, minor = CONTRACT_VERSIONS[kind]
        if spec.contract[0] != major or spec.contract[1] > minor:
            theirs = ".".join(map(str, spec.contract))
            return (
                f"{spec.name!r} is made for {kind} contract {theirs}; this Trident has {major}.{minor}",
                "install a version of the plugin, or of trident-core, that fits the other",
            )
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
        self.quarantine.append(entry)

    # --- answers

    def registered(self, kind: Kind | str | None = None) -> list[Registered]:
        """What is registered, by kind and name."""
        order = list(Kind)
        kind = None if kind is None else Kind(kind)
        found = [r for (k, _), r in self._registered.items() if kind is None or k is kind]
        return sorted(found, key=lambda r: (order.index(r.spec.kind), r.spec.name))

    def engines(self, kind: Kind | str) -> list[EngineSpec]:
        return [r.spec for r in self.registered(kind) if isinstance(r.spec, EngineSpec)]

    def commands(self) -> list[CommandSpec]:
        return [r.spec for r in self.registered(Kind.COMMAND) if isinstance(r.spec, CommandSpec)]

    def select(self, kind: Kind | str, flag: str | None = None) -> Selection:
        """The engine to use for `kind`: flag > environment > trident.toml > default.

        Raises PluginError for a name that is not installed (naming those that are) or quarantined (with the
        reason, chained to its traceback).
        """
        kind = Kind(kind)
        choice = configured(kind, flag)
        names = {spec.name: spec for spec in self.engines(kind)}
        if choice.name is None:
            for name in (*DEFAULTS.get(kind, ()), *names):
                if name in names:
                    return Selection(names[name], "default")
            raise PluginError(f"no {kind} engine is installed", hint="reinstall trident-core")
        if choice.name in names:
            return Selection(names[choice.name], choice.origin)
        for entry in self.quarantine:
            if (choice.name == entry.name and entry.kind == kind) or choice.name in (
                entry.plugin, entry.distribution,
            ):  # fmt: skip
                raise PluginError(
                    f"{kind} engine {choice.name!r} (by {choice.origin}) is quarantined: {entry.reason}",
                    hint=entry.hint,
                ) from entry.error
        installed = ", ".join(sorted(names)) or "none"
        hint = f"installed: {installed}"
        if self.quarantine:
            hint += f"; {len(self.quarantine)} quarantined, see `trident plugins`"
        raise PluginError(f"no {kind} engine named {choice.name!r} (by {choice.origin})", hint=hint)


def _distribution(point: EntryPoint) -> tuple[str, str]:
    """Name and version of the distribution that an entry point belongs to."""
    return (point.dist.name, point.dist.version) if point.dist else ("(unknown)", "")


def _import_hint(error: BaseException, distribution: str) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"install the missing module {error.name!r}, or reinstall {distribution}"
    return f"reinstall or remove {distribution}"


@cache
def registry() -> Registry:
    """The registry of the installed plugins, made at the first call."""
    made = Registry()
    made.add_entry_points(entry_points(group=GROUP))
    return made
