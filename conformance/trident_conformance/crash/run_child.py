"""`python -m trident_conformance.crash.run_child STORE ARGUMENTS…`: `trident` with these arguments, whose
store `told` is STORE, and says on standard output what it has acknowledged at once: `durable SEQ`.

Its segments are small and its commits many, so that a kill meets flushes, compactions and syncs.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
import sys
from types import SimpleNamespace
from typing import Any, Final

from trident_conformance.engines import select
from trident_core.contracts import EngineSpec, Kind
from trident_core.hookspecs import hookimpl
from trident_core.plugins import registry

#: Options that make a short run of a store have all that a long one has; those that a store knows are used.
SMALL: Final = {
    "segment_bytes": 1 << 16, "fanout": 2, "frame_events": 256, "commit": "group", "commit_events": 400,
    "commit_seconds": 0.05,
}  # fmt: skip


def small_options(base: type[Any]) -> dict[str, Any]:
    """Those of SMALL that a store knows."""
    known = inspect.signature(base).parameters
    return {name: value for name, value in SMALL.items() if name in known}


def told(base: type[Any]) -> type[Any]:
    """The store, telling."""

    class Told(base):  # type: ignore[misc]
        def __init__(self, path: Any, mode: str, session: Any = None, **options: Any) -> None:
            chosen = small_options(base) if mode != "read" else {}
            super().__init__(path, mode, session, **{**chosen, **options})
            if mode != "read":
                os.write(1, b"open %d\n" % self.recovery.events)

        def sync(self) -> int:
            seq: int = super().sync()
            os.write(1, b"durable %d\n" % seq)
            return seq

    return Told


def main(arguments: list[str]) -> None:
    engine = select(Kind.STORE, [arguments[0]])[0]
    module: Any = sys.modules[__name__]
    module.ToldStore = told(engine.spec.load())
    here = f"{__name__}:ToldStore" if __name__ != "__main__" else "__main__:ToldStore"
    spec: EngineSpec = dataclasses.replace(engine.spec, name="told", factory=here)

    @hookimpl
    def trident_register_stores() -> list[EngineSpec]:
        return [spec]

    registry().add_plugin(SimpleNamespace(trident_register_stores=trident_register_stores), "told")
    sys.argv = ["trident", *arguments[1:]]
    from trident_core.cli.entry import main as trident

    trident()


if __name__ == "__main__":
    main(sys.argv[1:])
