"""A reader beside the line: `python -m trident_core.benchmarks.line_reader STORE ENGINE` scans the store from
end to end, again and again, until its standard input is closed; then it prints how often."""

from __future__ import annotations

import select
import sys
from pathlib import Path

from trident_core.contracts import Kind
from trident_core.plugins import registry


def main() -> None:
    path, engine = Path(sys.argv[1]), sys.argv[2]
    store = registry().select(Kind.STORE, engine).load()(path, "read")
    print("ready", flush=True)
    scans, over = 0, False  # of a store that has events
    while not over:
        snapshot = store.snapshot()
        for events in snapshot.scan():
            assert events["seq"][-1] <= snapshot.last_seq
            over = bool(select.select([sys.stdin], [], [], 0)[0])
            if over:
                break
        else:
            scans += snapshot.count > 0
            over = bool(select.select([sys.stdin], [], [], 0)[0])
        snapshot.close()
    print(scans)


if __name__ == "__main__":
    main()
