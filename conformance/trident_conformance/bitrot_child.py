"""`python -m trident_conformance.bitrot_child`: judges damaged stores, one a line, until its input ends.

It is a process of its own because a library that reads a damaged file may end it. A line in is a JSON object
with `subject` and `folder`; a line out has `outcome` and `detail`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Final

import numpy as np

from trident_conformance import damage, streams
from trident_conformance.bitrot_peers import PEERS, rows_of
from trident_conformance.engines import Engine, select
from trident_core.contracts import Kind
from trident_core.dtypes import EVENT, Events
from trident_core.errors import TridentError

#: What the stores of the matrix hold, in groups of these sizes, each synced.
EVENTS: Final = streams.day(17, 160)
GROUPS: Final = (1, 3, 16, 40, 100)
#: From best to worst.
OUTCOMES: Final = ("right", "refused", "prefix", "crash", "silent")


def judge(subject: str, folder: Path) -> tuple[str, str]:
    """The outcome for one damaged folder, and what was said."""
    if subject in PEERS:
        return _judge_peer(subject, folder)
    return _judge_store(select(Kind.STORE, [subject])[0], folder)


def _judge_peer(name: str, folder: Path) -> tuple[str, str]:
    wanted = [data for _, data in rows_of(EVENTS)]
    found: list[bytes] = []
    try:
        found += PEERS[name].read(folder)
    except BaseException as error:  # whatever it raises, a panic included, the damage was noticed
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        if found != wanted[: len(found)]:
            return "silent", "wrong records were given out before the error"
        return "prefix" if found else "refused", str(error)
    if found == wanted:
        return "right", ""
    return "silent", f"{len(found)} of {len(wanted)} records, or wrong ones, and no error"


def _judge_store(engine: Engine, folder: Path) -> tuple[str, str]:
    """The worse of two answers: opened for reading, and (a copy) for appending."""
    _take_lock_over(folder)
    copy = folder.with_name(folder.name + "-append")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    try:
        answers = [_read(engine, folder), _append(engine, copy)]
    finally:
        shutil.rmtree(copy, ignore_errors=True)
    return max(answers, key=lambda answer: OUTCOMES.index(answer[0]))


def _take_lock_over(folder: Path) -> None:
    """A lock's text may be its last holder's process id, the parent's: else taking the lock, which is no
    change of the store, would look like one."""
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_size < 16 and path.read_bytes() == b"%d\n" % os.getppid():
            path.write_bytes(b"%d\n" % os.getpid())


def _read(engine: Engine, folder: Path) -> tuple[str, str]:
    given: list[Events] = []
    try:
        try:
            outcome = damage.read_outcome(engine, folder, EVENTS, streams.session())
        except AssertionError as error:
            return "silent", str(error)
        if outcome == "exact":
            return "right", ""
        with contextlib.closing(engine.make(folder, "read")) as store:
            given += (batch.copy() for batch in store.snapshot().scan(batch=8))
    except TridentError as error:
        found = np.concatenate([np.empty(0, EVENT), *given])
        if not damage.is_prefix(found, EVENTS):
            return "silent", "wrong events were given out before the error"
        return "prefix" if len(found) else "refused", error.message
    except Exception as error:
        return "crash", f"not an error of Trident's: {error!r}"
    return "silent", "refused once, and then not"


def _append(engine: Engine, folder: Path) -> tuple[str, str]:
    try:
        outcome = damage.append_outcome(engine, folder, EVENTS)
    except AssertionError as error:
        return "silent", f"appending: {error}"
    except Exception as error:
        return "crash", f"appending, not an error of Trident's: {error!r}"
    return ("right", "") if outcome == "exact" else ("refused", "refused for appending")


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints does not get between the answers
    for line in sys.stdin:
        asked = json.loads(line)
        outcome, detail = judge(asked["subject"], Path(asked["folder"]))
        print(json.dumps({"outcome": outcome, "detail": detail}), file=answers, flush=True)


if __name__ == "__main__":
    main()
