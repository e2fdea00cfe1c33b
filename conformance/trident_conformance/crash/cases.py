"""What is tried: for each seed a store's options and a script, always the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from trident_conformance.engines import Engine
from trident_core.contracts import Capability, Kind, Store
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_store.crashcheck import PATH, Opener
from trident_store.crashmodel import CrashFileSystem

#: No script of a seed's own appends more events than this: a store stays small, and a state costs little.
EVENTS_MAX: Final = 40

#: Scripts that the first seeds play: several syncs, syncs of nothing, a rotation inside one append, one right
#: after a sync, reopenings, syncs interrupted at each step, flushes and compactions with openings between
#: them that have work left to do, power cuts while all that goes on, and spills of the line.
FIXED: Final = (
    "a2 a1 s a3 s a16 a3 s r a1 s a2",
    "a1 s s a1 s r r a1 s a13 s a2 a1",
    "a1 i3 a2 i1 a1 i2 a1 s a1 i4 a3 s i1 a1",
    "a30 s a2",
    "a2 s a30 s a3 s r a1 s a2",
    "a20 s a20 s a20 s a20 r a3",
    "a1 i3 a2 i1 a30 i2 a1 s a1 i4 a13 s i1 a1",
    "a6 s a2 s a3 s a1 s a9 s a3 s a2 s a30 s a2 s r a2 s a1 s a8",
    "a3 s a2 x a1 s a4 x a2 x s a1",
    "a30 s a16 x a20 s a9 x a2 s",
    "a5 s p3 p6 a2 u a4 s p2 s p5 x a1 p4 k20 p3 r p6 x u a2",
)


@dataclass(frozen=True)
class Case:
    """One seed: the options of the store and the script that is played."""

    seed: int
    script: str
    options: tuple[tuple[str, Any], ...]

    @property
    def key(self) -> str:
        return str(self.seed)

    def shown(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.options)
        return f"script {self.script!r}, options {options or 'none'}"


def case_of(engine: Engine, seed: int) -> Case:
    """Seeds from 0. Each of the first ones plays one of FIXED, the others a script of their own."""
    rng = random.Random(seed)
    variants = options_of(engine)
    script = FIXED[seed] if seed < len(FIXED) else _script(rng)
    return Case(seed, script, tuple(sorted(variants[seed % len(variants)].items())))


def _script(rng: random.Random) -> str:
    steps: list[str] = []
    left = EVENTS_MAX
    for _ in range(rng.randint(5, 12)):
        kind = rng.choices("apsxriukfc", (8, 2, 6, 3, 2, 2, 2, 2, 1, 1))[0]
        if kind in "ap":
            count = min(rng.choice((1, 1, 2, 3, 5, 9, 16)), left)
            left -= count
            if count:
                steps.append(f"{kind}{count}")
        else:
            most = {"i": 5, "k": 100}.get(kind)
            steps.append(f"{kind}{rng.randint(1, most)}" if most else kind)
    return " ".join(steps) or "a1 s"


def options_of(engine: Engine) -> list[dict[str, Any]]:
    """What the engine's class says makes a short run have all that a long one has: its `crash_options`."""
    said: Callable[[], list[dict[str, Any]]] | None = getattr(engine.spec.load(), "crash_options", None)
    return said() if said is not None else [{}]


def option_of(engine: Engine) -> str:
    """What `--store` must say to have this engine: of a factory, its capabilities, too."""
    return "+".join([engine.name, *sorted(engine.spec.capabilities)]) if ":" in engine.name else engine.name


def modelled(engine: Engine) -> bool:
    """Does every call of the engine to the disk go through a file-system object that we may give?"""
    return engine.declares(Capability.FILESYSTEM)


def opener_of(engine: Engine, case: Case) -> Opener:
    """Raises UsageError for an engine that takes no file system."""
    if engine.kind is not Kind.STORE or not modelled(engine):
        raise UsageError(
            f"{engine.label} does not declare the capability {Capability.FILESYSTEM}",
            hint="docs/crash-lab.md says what a store needs for it, and what can be had without",
        )
    options = dict(case.options)

    def open_it(mode: str, session: Session | None, files: CrashFileSystem) -> Store:
        given = {name: value for name, value in options.items() if name != "store_id" or mode == "create"}
        store: Store = engine.make(PATH, mode, session, filesystem=files, **given)
        return store

    return open_it
