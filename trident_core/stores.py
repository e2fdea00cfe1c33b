"""Stores that are there already: which engine one is for, by its files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

from trident_core.config import DEFAULTS
from trident_core.contracts import EngineSpec, Kind, Store
from trident_core.plugins import Selection, registry


def select_store(path: Path, flag: str | None = None) -> Selection:
    """The engine for the store at `path`: the one of `flag`; else the selected one if the files may be its
    own; else the first whose they may be; else the selected one, which will say what it misses.

    Environment and trident.toml say how to make new stores; what a store is, its files say. Raises
    PluginError.
    """
    chosen = registry().select(Kind.STORE, flag)
    if flag is not None:
        return chosen
    try:
        names = os.listdir(path)
    except OSError:
        return chosen
    if may_be(chosen.spec, names):
        return chosen
    specs = registry().engines(Kind.STORE)
    first = DEFAULTS.get(Kind.STORE, ())
    for spec in sorted(specs, key=lambda each: (each.name not in first, each.name)):
        if may_be(spec, names):
            return Selection(spec, "the store's files")
    return chosen


def may_be(spec: EngineSpec, names: list[str]) -> bool:
    """Do these names in a folder look like a store of the engine?"""
    return any(fnmatchcase(name, pattern) for pattern in spec.files for name in names)


@contextmanager
def reading(path: Path, flag: str | None = None) -> Iterator[tuple[Store, EngineSpec]]:
    """The store at `path`, open for reading, and its engine. Raises what the engine raises."""
    selection = select_store(path, flag)
    store: Store = selection.make(path, "read")
    try:
        yield store, selection.spec
    finally:
        store.close()
