"""`python -m trident_conformance.crash.foreign_child …`: drives and judges stores that take no file-system
object, in a process of its own because a library may end it.

    drive STORE MOUNT SCRIPT     plays a script in MOUNT/store, noting what was promised on the mount
    judge STORE                  reads folders from standard input, one a line; answers in JSON, a line each
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from trident_conformance import streams
from trident_conformance.engines import Engine, select
from trident_core.contracts import Kind
from trident_core.dtypes import EVENT, Events
from trident_core.errors import DamagedStoreError, StoreError
from trident_store.crashcheck import make_events


def events_of(first: int, count: int) -> Events:
    """EVENT[count]: what a driven store holds; symbols are those of the suite's session."""
    events = make_events(first, count)
    events["locate"] = 1
    return events


def drive(engine: Engine, mount: Path, script: str) -> None:
    folder = mount / "store"
    acked, attempted = -1, 0

    def note() -> None:
        os.setxattr(mount, "user.note", f"{acked} {attempted}".encode())

    note()
    store = engine.make(folder, "create", streams.session())
    acked = 0
    note()
    for step in script.split():
        if step[0] == "a":
            events = events_of(attempted, int(step[1:]))
            attempted += len(events)
            note()
            store.append(events)
        elif step == "s":
            store.sync()
            acked = attempted
        else:
            store.close()
            acked = attempted
            note()
            store = engine.make(folder, "append")
        note()
    sys.stdout.flush()
    os._exit(0)  # as a kill: nothing more is written


def judge(engine: Engine, folder: Path) -> dict[str, Any]:
    """{"events": how many, -1 when it cannot be opened, "problem": what is wrong}."""
    try:
        store = engine.make(folder, "read")
        seen = np.concatenate([np.empty(0, EVENT), *store.snapshot().scan()])
        store.close()
        problem = _writer_problem(engine, folder, seen)
        if seen.tobytes() != events_of(0, len(seen)).tobytes():
            problem = "wrong data"
        return {"events": len(seen), "problem": problem}
    except DamagedStoreError as error:
        return {"events": -1, "problem": f"! a crash looks like damage: {error}"}
    except StoreError as error:
        return {"events": -1, "problem": f"cannot be opened: {error}"}
    except Exception as error:
        return {"events": -1, "problem": f"! {error!r}"}


def _writer_problem(engine: Engine, folder: Path, seen: Events) -> str:
    store = engine.make(folder, "append")
    if store.recovery.events != len(seen):
        return f"a reader sees {len(seen)} events, recovery {store.recovery.events}"
    store.append(events_of(len(seen), 3))
    store.close()
    again = engine.make(folder, "read")
    got = np.concatenate([np.empty(0, EVENT), *again.snapshot().scan()])
    found = again.verify()
    again.close()
    if got.tobytes() != events_of(0, len(seen) + 3).tobytes():
        return "wrong data after writing on"
    return "" if found.ok else f"verify says {found.findings}"


def main(arguments: list[str]) -> None:
    engine = select(Kind.STORE, [arguments[1]])[0]
    if arguments[0] == "drive":
        drive(engine, Path(arguments[2]), arguments[3])
    for line in sys.stdin:
        print(json.dumps(judge(engine, Path(line.rstrip("\n")))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
