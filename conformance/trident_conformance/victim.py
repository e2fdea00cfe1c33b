"""`python -m trident_conformance.victim FACTORY FOLDER SEED COUNT`: append a known day until killed.

It creates the store, or goes on where recovery found it, and prints the durable seq after each sync. The
suite kills it with SIGKILL and looks at what is left.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from trident_conformance import streams
from trident_core.contracts import EngineSpec, Kind


def main(factory: str, folder: str, seed: int, count: int) -> None:
    make = EngineSpec(Kind.STORE, "victim", factory, "").load()
    path = Path(folder)
    exists = path.exists() and any(path.iterdir())
    store = make(path, "append") if exists else make(path, "create", streams.session())
    print("open", store.recovery.events, flush=True)
    events = streams.day(seed, count)
    pick, at = random.Random(seed + store.recovery.events), store.recovery.events
    while at < count:
        size = pick.choice((1, 3, 50, 400))
        store.append(events[at : at + size])
        at = min(at + size, count)
        if pick.random() < 0.3:
            print("durable", store.sync(), flush=True)
    print("full", flush=True)
    sys.stdin.read()  # a fast store waits here to be killed
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
