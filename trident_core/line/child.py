"""The store's process: `python -m trident_core.line.child`, started by `trident_core.line.process`.

It reads its orders as one line of JSON from standard input, tells as lines of JSON on standard output that
the store is open, and at the end what it did. Standard input stays open as long as the other process lives:
its end closes the ring, so that what is in it is still stored, and synced, when the other one was killed.
"""

from __future__ import annotations

import base64
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from trident_core.contracts import Kind, Store
from trident_core.errors import TridentError, UsageError
from trident_core.line.drain import Drain, DrainOptions
from trident_core.line.faults import Faults, faulty
from trident_core.line.pinning import pin
from trident_core.line.shared import SharedRing
from trident_core.line.spill_recovery import last_event
from trident_core.line.stores import open_writing
from trident_core.plugins import registry
from trident_core.session import Session


def main() -> None:
    """Run the store behind a shared ring; exit with 0 when all is durable, 1 after an error that was told."""
    for number in (signal.SIGINT, signal.SIGTERM):  # this process ends when the line does
        signal.signal(number, signal.SIG_IGN)
    orders = json.loads(sys.stdin.readline() or "null")
    if orders is None:  # the other process died first
        return
    try:
        _serve(orders)
    except TridentError as error:
        _tell({"error": {"type": _kind_of(error), "message": error.message, "hint": error.hint}})
        os._exit(1)
    except BaseException as error:  # a bug, told to the process that prints errors
        _tell({"error": {"type": "bug", "message": repr(error), "hint": ""}})
        os._exit(1)


def _serve(orders: dict[str, Any]) -> None:
    notices = []
    if orders["cpu"] is not None and (refusal := pin(orders["cpu"])):
        notices.append(refusal)
    session = Session.from_json(orders["session"])
    shared = SharedRing(orders["handle"], orders["capacity"])
    shared.ring.warm_up()
    threading.Thread(target=_close_with_the_other, args=(shared,), daemon=True).start()
    faults = Faults.parse(orders["inject"])
    path = Path(orders["path"])
    factory = registry().select(Kind.STORE, orders["engine"]).load()
    if (warm_up := getattr(factory, "warm_up", None)) is not None:
        with suppress(TypeError):  # of a class whose warm-up needs a store
            warm_up()
    store = open_writing(factory, path, orders["mode"], session, faults)
    try:
        last = last_event(store)
        event = base64.b64encode(last.tobytes()).decode() if last is not None else ""
        _tell({"ready": {"pid": os.getpid(), "stats": store.stats(), "last_event": event}})
        options = DrainOptions(
            batch=orders["batch"], sync_interval_s=orders["sync_interval_s"], live=orders["live"],
            spill_folder=path if orders["live"] else None, faults=faults,
            filesystem=faulty(faults) if faults else None,
        )  # fmt: skip
        if faults is not None:
            faults.start()
        drain = Drain(shared.ring, store, session, options, lambda: shared.learn(session))
        drain.run()
        shared.learn(session)
        figures = _close(store)
    except BaseException:
        with suppress(Exception):  # the first error is the one to tell
            store.close()
        raise
    _tell(
        {
            "done": {
                "stored": drain.stored, "durable_seq": drain.durable_seq, "busy_s": drain.busy_s,
                "line": drain.report(), "notices": notices, "stats": figures,
            }
        }
    )  # fmt: skip


def _close(store: Store) -> dict[str, int]:
    figures = store.stats()
    store.close()
    return figures


def _close_with_the_other(shared: SharedRing) -> None:
    """Wait for the other process to end or to close the pipe, then let the ring drain."""
    while os.read(0, 1 << 16):  # of the descriptor: a buffered reader would be locked at exit
        pass
    shared.ring.close()


def _tell(message: dict[str, Any]) -> None:
    with suppress(OSError):  # nobody is there any more
        print(json.dumps(message), flush=True)


def _kind_of(error: TridentError) -> str:
    return "UsageError" if isinstance(error, UsageError) else type(error).__name__


if __name__ == "__main__":
    main()
