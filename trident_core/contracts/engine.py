"""Kinds of engine, what describes one without importing it, and what each may optionally do."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol, runtime_checkable

from trident_core.errors import PluginError


class Kind(StrEnum):
    """The kinds of engine. One register hook each (`trident_core.hookspecs`)."""

    FEED = "feed"
    PARSER = "parser"
    BOOK = "book"
    STORE = "store"
    QUERY = "query"
    SEQUENCE = "sequence"
    COMMAND = "command"


#: Version of each kind's contract (major, minor). An engine made for another major is refused; one made for a
#: smaller minor is accepted, and lacks what came later; for a greater minor, refused.
CONTRACT_VERSIONS: Final[Mapping[Kind, tuple[int, int]]] = dict.fromkeys(Kind, (1, 0))


class Capability(StrEnum):
    """Optional abilities an engine may declare. Undeclared: skipped by conformance. Declared: must pass."""

    ENCODE = "encode"  # parser: encode_events and encode_rows
    TABLES = "tables"  # parser: parse_tables
    LENIENT = "lenient"  # feed, parser: a documented lenient mode
    SPANS = "spans"  # query: Program.spans
    FIRST = "first"  # query: compile(first=True), spans that are leftmost-first
    ENDS = "ends"  # query: Program.ends
    SETS = "sets"  # query: compile_set, many patterns at once
    STREAMING = "streaming"  # sequence: matches as soon as they are final, in bounded memory; save and load
    SHARDED = "sharded"  # book: several at once in threads, each with some of the symbols (see Book)
    MATCH = "match"  # book: its factory has `matcher`, an exchange of such books (MatchingBook)
    PORTABLE_FORMAT = "portable_format"  # store: reads and writes the reference's files
    FILESYSTEM = (
        "filesystem"  # store: takes `filesystem=`, a FileSystem; all it does to the disk goes through it
    )


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """One engine, described without importing it.

    `factory` is "package.module:Class", resolved by `load()` only when the engine is selected, so that
    listing engines never imports numba. `protocols` names the wire formats a feed yields or a parser reads.
    `files`, of a store: patterns of names (as of `fnmatch`) in its folder, any of which gives it away.
    """

    kind: Kind
    name: str
    factory: str
    summary: str
    contract: tuple[int, int] = (1, 0)
    capabilities: frozenset[str] = frozenset()
    protocols: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()
    install_hint: str = ""
    files: tuple[str, ...] = ()

    def load(self) -> Any:
        """Import and return the factory. Raises PluginError with the cause and the install hint."""
        module, _, attribute = self.factory.partition(":")
        try:
            return getattr(importlib.import_module(module), attribute)
        except Exception as error:  # a stranger's module may raise anything
            raise PluginError(
                f"{self.kind} engine {self.name!r} cannot be loaded from {self.factory}: {error!r}",
                hint=not_whole(error)
                or self.install_hint
                or f"is the package that provides {module} complete?",
            ) from error


#: The top-level modules of Trident's own distribution; packages of others may begin with `trident_`, too.
OWN_MODULES: Final = frozenset({
    "trident_core", "trident_feed", "trident_parser", "trident_book", "trident_store", "trident_query",
    "trident_sim", "trident_agents", "trident_facts", "trident_exchange", "trident_conformance",
})  # fmt: skip


def not_whole(error: BaseException) -> str:
    """A hint where a module of Trident itself is what an import did not find; else empty."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing is None or missing.partition(".")[0] not in OWN_MODULES:
        return ""
    return (
        f"{missing} would be a module of Trident itself: its installation is not whole (reinstall "
        "trident-core), or is of another version than the plugin was made for"
    )


@runtime_checkable
class Warmable(Protocol):
    """Optional for engines of every kind that compile: `warm_up` does so before the clock of a run starts."""

    def warm_up(self) -> None:
        """Compile, or load from the cache, all kernels; change nothing that can be observed."""
        ...
