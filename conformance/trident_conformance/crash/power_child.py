"""`python -m trident_conformance.crash.power_child STORE FOLDER SEED COUNT`: append a known day, sync often.

It says `durable N` (events) after each sync, until the end or until something fails: then one line, and exit
status 4.
"""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path

import numpy as np

from trident_conformance import streams
from trident_conformance.crash.run_child import small_options
from trident_conformance.engines import select
from trident_core.contracts import Kind
from trident_core.errors import TridentError


def main(name: str, folder: str, seed: int, count: int) -> int:
    factory = select(Kind.STORE, [name])[0].spec.load()
    day, pick, at = streams.day(seed, count), random.Random(seed), 0
    options = small_options(factory)
    options.pop("commit", None)  # what is durable is said by nobody else
    try:
        store = factory(Path(folder), "create", streams.session(), **options)
        while at < count:
            size = pick.choice((1, 3, 50, 150))
            store.append(day[at : at + size])
            at = min(at + size, count)
            if pick.random() < 0.5:
                acked = int(np.searchsorted(day["seq"], store.sync(), "right"))
                os.write(1, b"durable %d\n" % acked)
        store.close()
        os.write(1, b"durable %d\n" % count)
    except TridentError as error:
        os.write(2, f"error: {error.message}\nhint: {error.hint}\n".encode())
        return 4
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    sys.stdout.flush()
    os._exit(status)
