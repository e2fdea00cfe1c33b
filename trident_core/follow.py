"""Following a store that another process writes: a new snapshot each time more of it is durable.

    for step in follow(store, path):
        for events in step.snapshot.scan(seq=step.seq): ...

What a step spans is durable, so it can never be taken back; steps join without a gap, and no event comes
twice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from trident_core.contracts import Snapshot, Store
from trident_core.errors import StoreError
from trident_core.watching import Watch

#: The file by which the built-in stores say how far they are durable.
MARK: Final = "durable"
#: At most so many snapshots a second: what becomes durable in between comes with the next one.
STEPS_PER_S: Final = 20
#: Nothing else tells that the folder has gone; looked at this often, in seconds.
_STILL_THERE_S: Final = 5.0


class Step(NamedTuple):
    """A snapshot, and the closed range of sequence numbers that is new in it. It is closed when the next step
    is asked for."""

    snapshot: Snapshot
    seq: tuple[int, int]


def follow(
    store: Store, path: Path, *, after: int = 0, stop: Callable[[], bool] = lambda: False,
    seconds: float | None = None,
) -> Iterator[Step]:  # fmt: skip
    """Steps of `store`, open for reading at `path`, from the event behind sequence number `after` on.

    The first one is what is durable now, if there is any; then it waits for more, for ever, without looking
    again and again, until `stop()` says so (asked when something happened, and every few seconds), or until
    so many `seconds` are over.

    Raises StoreError when the folder is gone, and what `Store.snapshot` raises.
    """
    mark = path / MARK
    watch = Watch(mark if mark.exists() else path)
    end = math.inf if seconds is None else time.monotonic() + seconds

    def over() -> bool:
        return time.monotonic() >= end or stop()

    try:
        while not over():
            began = time.monotonic()
            snapshot = store.snapshot()
            try:
                durable = min(store.stats()["durable_seq"], snapshot.last_seq)
                if durable > after:
                    yield Step(snapshot, (after + 1, durable))
                    after = durable
            finally:
                snapshot.close()
            while not watch.wait(max(min(_STILL_THERE_S, end - time.monotonic()), 0.0)):
                _require(path, mark)
                if over():
                    return
            _require(path, mark)
            time.sleep(max(began + 1 / STEPS_PER_S - time.monotonic(), 0.0))
    finally:
        watch.close()


def _require(path: Path, mark: Path) -> None:
    if not path.exists() or (not mark.exists() and not any(path.iterdir())):
        raise StoreError(
            f"the store {path} is gone: its folder was removed", hint="nothing is left to follow"
        )
