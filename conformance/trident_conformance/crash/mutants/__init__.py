"""Broken protocols, one a module: each says in its docstring what is wrong, and plants just that.

A module has `STORE`, the engine it breaks, `TRIAL`, what has to find it, and `plant(patch)`. A mutant that
no trial finds is a hole in the laboratory.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import pkgutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.table import Table

from trident_conformance.crash.trials import Found
from trident_conformance.engines import select
from trident_core.contracts import Kind


class Patch:
    """Changes attributes, and changes them back."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def set(self, owner: Any, name: str, value: Any) -> Any:
        """Give `owner` another `name`; what it was."""
        old = getattr(owner, name)
        mine = name in vars(owner)
        setattr(owner, name, value)
        self._undo.append(lambda: setattr(owner, name, old) if mine else delattr(owner, name))
        return old

    def without(self, owner: Any, name: str, call: str) -> None:
        """Run a function whose first argument is, or has, the file system, which ignores one of its calls."""
        real = getattr(owner, name)

        def wrapped(first: Any, *args: Any, **kwargs: Any) -> Any:
            with deaf(first if hasattr(first, call) else first._files, call):
                return real(first, *args, **kwargs)

        self.set(owner, name, wrapped)

    def blind(self, owner: Any, name: str, module: Any) -> None:
        """Run a function for whose module every CRC is right."""
        real = getattr(owner, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            crc32c, module.crc32c = module.crc32c, lambda data, seed=0: Right()
            try:
                return real(*args, **kwargs)
            finally:
                module.crc32c = crc32c

        self.set(owner, name, wrapped)

    def undo(self) -> None:
        while self._undo:
            self._undo.pop()()


class Right(int):
    """A checksum that is always right."""

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = int.__hash__


@contextlib.contextmanager
def deaf(files: Any, call: str) -> Iterator[None]:
    """The file system ignores a call."""
    setattr(files, call, lambda *args: None)
    try:
        yield
    finally:
        delattr(files, call)


@dataclass(frozen=True)
class Mutant:
    name: str
    module: ModuleType

    @property
    def store(self) -> str:
        return str(self.module.STORE)

    @property
    def wrong(self) -> str:
        """What is wrong, in one line."""
        return " ".join((self.module.__doc__ or "").partition("\n\n")[0].split())

    def hunt(self) -> Found | None:
        """Plant it and try; what found it."""
        engine = select(Kind.STORE, [self.store])[0]
        patch = Patch()
        try:
            self.module.plant(patch)
            found: Found | None = self.module.TRIAL(engine)
            return found
        finally:
            patch.undo()

    def control(self) -> Found | None:
        """The same trial of the store as it is: must find nothing."""
        found: Found | None = self.module.TRIAL(select(Kind.STORE, [self.store])[0])
        return found


def mutants() -> list[Mutant]:
    """All of them, by name."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__))
    return [Mutant(name, importlib.import_module(f"{__name__}.{name}")) for name in names]


def main(as_json: bool, only: str | None, errors: Console) -> int:
    """Hunt each; 0 when all are caught, 1 when one survives."""
    rows = []
    for mutant in mutants():
        if only and only not in mutant.name:
            continue
        began = time.perf_counter()
        found = mutant.hunt()
        rows.append((mutant, found, time.perf_counter() - began))
        errors.print(f"{mutant.name}: {'caught' if found else 'SURVIVES'}", markup=False)
    survivors = [mutant.name for mutant, found, _ in rows if found is None]
    if as_json:
        said = [
            {"mutant": m.name, "store": m.store, "wrong": m.wrong, "seconds": round(s, 3),
             "state": f.state if f else "", "problem": f.problem if f else ""}
            for m, f, s in rows
        ]  # fmt: skip
        print(json.dumps({"ok": not survivors, "survivors": survivors, "mutants": said}, indent=1))
        return 1 if survivors else 0
    table = Table(title=f"{len(rows)} broken protocols", title_justify="left", show_lines=True)
    for title in ("mutant", "store", "what is wrong", "found by"):
        table.add_column(title, overflow="fold")
    for mutant, found, _ in rows:
        how = f"{found.state}: {found.problem[:120]}" if found else "nothing: it survives"
        table.add_row(mutant.name, mutant.store, mutant.wrong, how)
    Console(highlight=False, width=140).print(table, markup=False)
    return 1 if survivors else 0
