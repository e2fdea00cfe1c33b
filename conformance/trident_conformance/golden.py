"""`python -m trident_conformance.golden [--check]`: a small store of each format version, written and kept.

The stores are in `vectors/stores/<version>`: what a version wrote, every later one must read, and, as long as
it writes that version, write byte for byte. A version's store is never written anew; a new version gets its
own. `--check` writes each again and compares.
"""

from __future__ import annotations

import argparse
import datetime as dt
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from trident_core.contracts import Kind
from trident_core.dtypes import EVENT, Events
from trident_core.plugins import registry
from trident_core.session import Directory, Instrument, Session

FOLDER: Final = Path(__file__).parent / "vectors" / "stores"
STORE_ID: Final = bytes(range(100, 116))
_LOG: Final[dict[str, Any]] = {"segment_bytes": 2_048, "sector_bytes": 512, "frame_events": 8}
EVENTS: Final = 40


def golden_events(first: int, count: int) -> Events:
    """Events `first`, `first` + 1, … of one fixed sequence: adds, executions, cancels, replaces, deletes."""
    n = np.arange(first, first + count, dtype=np.uint64)
    events = np.zeros(count, EVENT)
    events["seq"], events["ts"] = 3 * n + 2, 34_200_000_000_000 + 1_000 * n
    events["ref"], events["ref2"] = n % 16 + 1, n % 16 + 101
    events["price"], events["qty"] = (1_000_000 + 100 * (n % 7)).astype(np.int64), 100 + n
    events["locate"] = n % 3 + 1
    events["type"] = np.frombuffer(b"AAFEXUCD", np.uint8)[(n % 8).astype(np.intp)]
    events["side"] = np.frombuffer(b"BS", np.uint8)[(n % 2).astype(np.intp)]
    events["aux"] = (n[:, None] + np.arange(8, dtype=np.uint64)) % np.uint64(251)
    return events


def golden_session() -> Session:
    """The session of every golden store, before `GOOG` joins its directory."""
    first = Instrument(1, "AAPL", {"round_lot": 100})
    return Session(date=dt.date(2019, 12, 30), directory=Directory([first, Instrument(2, "BRK.A")]))


def _write(engine: str, folder: Path, **options: Any) -> None:
    """Two openings, a sync, symbols that come later."""
    select = registry().select(Kind.STORE, engine)
    session = golden_session()
    with select.make(folder, "create", session, store_id=STORE_ID, **options) as store:
        store.append(golden_events(0, 5))
        store.sync()
        session.directory.put(Instrument(3, "GOOG"))
        store.append(golden_events(5, 15))
    with select.make(folder, "append", **options) as store:
        store.append(golden_events(20, EVENTS - 20))


def _with_tables(folder: Path, **more: Any) -> None:
    from trident_store.lsm.layout import Shape

    _write("lsm", folder, **_LOG, fanout=2, shape=Shape(8, 16, 8), background=False, **more)


def _with_job(folder: Path) -> None:
    """Tables, and a compaction of them that was closed after two of its blocks."""
    from trident_store.lsm.layout import Shape

    more: dict[str, Any] = {"fanout": 64, "shape": Shape(8, 16, 8), "background": False}
    _write("lsm", folder, **_LOG, **more)
    select = registry().select(Kind.STORE, "lsm")
    with select.make(folder, "append", **_LOG, **more, checkpoint_events=8) as store:
        maintenance = store._maintenance
        maintenance.settings = maintenance.settings._replace(fanout=2)
        for _ in range(2):
            maintenance.step()


#: Who writes each version. The minor is a sum: 1 tables, 2 a mark that trails; behind a "-", what else is
#: there that a reader need not know.
WRITERS: Final[Mapping[str, Callable[[Path], None]]] = {
    "1.0": lambda folder: _write("reference", folder, **_LOG),
    "1.1": lambda folder: _with_tables(folder, mark="each", spare_segments=0),
    "1.2": lambda folder: _write("lsm", folder, **_LOG, tables=False, background=False),
    "1.3": _with_tables,
    "1.3-job": _with_job,
}


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of a store, without the lock."""
    return {each.name: each.read_bytes() for each in sorted(folder.iterdir()) if each.name != "lock"}


def write(version: str, folder: Path) -> dict[str, bytes]:
    """Write a version's golden store to `folder`; its files."""
    WRITERS[version](folder)
    return files_of(folder)


def main() -> int:
    """Writes the stores that are missing; with --check compares all. 1 when one differs."""
    parser = argparse.ArgumentParser(prog="python -m trident_conformance.golden", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; compare")
    check = parser.parse_args().check
    differ = 0
    for version in WRITERS:
        with tempfile.TemporaryDirectory() as work:
            made = write(version, Path(work) / "store")
        kept = FOLDER / version
        if not check and not kept.exists():
            kept.mkdir(parents=True)
            for name, data in made.items():
                (kept / name).write_bytes(data)
        same = kept.exists() and files_of(kept) == made
        differ += not same
        verdict = "same" if same else "DIFFERS"
        print(f"{version}: {len(made)} files, {sum(map(len, made.values()))} bytes: {verdict}")
    return 1 if differ else 0


def copy(version: str, folder: Path) -> Path:
    """A kept store, copied to where it may be changed."""
    shutil.copytree(FOLDER / version, folder)
    return folder


if __name__ == "__main__":
    sys.exit(main())
