"""What befalls a store's files, and what a store may then say: exact data or an error, nothing else."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from trident_conformance.engines import Engine
from trident_core.dtypes import EVENT, Events
from trident_core.errors import TridentError
from trident_core.session import Session

_MASKS: Final = (0x01, 0x80, 0xFF, 0x10)


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a store by its relative path."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def scanned(snapshot: Any, **filters: Any) -> Events:
    """All events of a scan in one array; each batch must be 1 to `batch` events."""
    limit = filters.get("batch", 65_536)
    batches = []
    for events in snapshot.scan(**filters):
        assert 1 <= len(events) <= limit, f"a batch of {len(events)} events"
        batches.append(events.copy())
    return np.concatenate([*batches, np.zeros(0, EVENT)])


def is_prefix(found: Events, whole: Events) -> bool:
    return len(found) <= len(whole) and found.tobytes() == whole[: len(found)].tobytes()


def read_outcome(
    engine: Engine, folder: Path, events: Events, session: Session, *, durable: int | None = None
) -> str:
    """Open a store that may be damaged for reading; what it said: "exact" or "refused".

    Of the events, the first `durable` were called durable (None: all); those behind them may be missing.
    Raises AssertionError for what no store may do: wrong data, acknowledged data left out without an error,
    an error that is none of Trident's, or a verification that calls sound what cannot be read.
    """
    try:
        store = engine.make(folder, "read")
    except TridentError:
        return "refused"
    given: list[Events] = [np.zeros(0, EVENT)]
    try:
        verification = store.verify()
        snapshot = store.snapshot()
        given += (batch.copy() for batch in snapshot.scan(batch=64))
        theirs = snapshot.session.to_json()
    except TridentError:
        assert is_prefix(np.concatenate(given), events), "wrong events were given out before the error"
        assert not verification.ok, "verify calls sound what cannot be read"
        return "refused"
    finally:
        store.close()
    found = np.concatenate(given)
    least = len(events) if durable is None else durable
    assert is_prefix(found, events), "wrong events were given out as good ones"
    assert len(found) >= least, f"{len(found)} events of {least} acknowledged ones, without an error"
    assert theirs == session.to_json(), "the session is another one"
    return "exact"


def append_outcome(engine: Engine, folder: Path, events: Events) -> str:
    """Open a store that may be damaged, all of whose events were acknowledged, for appending: "exact" or
    "refused", and then not a byte of it is changed. Raises AssertionError for anything else."""
    before = files_of(folder)
    try:
        store = engine.make(folder, "append")
    except TridentError:
        assert files_of(folder) == before, "the store was refused, and changed"
        return "refused"
    try:
        found, recovered = scanned(store.snapshot()), store.recovery.events
    finally:
        store.close()
    assert found.tobytes() == events.tobytes(), f"{len(found)} of {len(events)} events, or wrong ones"
    assert recovered == len(events), "recovery counts other events than there are"
    return "exact"


def damages(
    files: dict[str, bytes], seed: int, per_file: int, least: int = 8
) -> Iterator[tuple[str, str, bytes | None]]:
    """(what was done, file, its new bytes or None when it is gone): flips, cuts, zeros, garbage, loss.

    Of a store with more than three files, fewer places in each, but `least`."""
    pick = random.Random(seed)
    per_file = per_file if len(files) <= 3 else max(per_file // len(files), least)
    for name, data in files.items():
        for i, at in enumerate(places(len(data), per_file, pick)):
            flipped = bytearray(data)
            flipped[at] ^= _MASKS[i % len(_MASKS)]
            yield f"byte {at} flipped", name, bytes(flipped)
        for at in places(len(data), per_file // 4, pick):
            yield f"cut to {at} bytes", name, data[:at]
            zeroed = bytearray(data)
            zeroed[at : at + 512] = bytes(len(zeroed[at : at + 512]))
            yield f"512 bytes at {at} zeroed", name, bytes(zeroed)
        yield "garbage behind the end", name, data + pick.randbytes(100)
        yield "zeros behind the end", name, data + bytes(4096)
        yield "deleted", name, None


def places(size: int, n: int, pick: random.Random) -> list[int]:
    """n offsets: half of them among the first and the last bytes, where headers and ends are."""
    if size <= n:
        return list(range(size))
    edge = min(n // 4, size // 2)
    chosen = {*pick.sample(range(min(size, 200)), min(edge, size, 200))}
    chosen |= {size - 1 - k for k in pick.sample(range(min(size, 200)), min(edge, size, 200))}
    while len(chosen) < n:
        chosen.add(pick.randrange(size))
    return sorted(chosen)


def damaged_copy(folder: Path, target: Path, name: str, data: bytes | None) -> Path:
    """A copy of a store with one file changed."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    path = target / name
    if data is None:
        path.unlink()
    else:
        path.write_bytes(data)
    return target


def torn_images(
    synced: dict[str, bytes], now: dict[str, bytes], n: int
) -> Iterator[tuple[str, dict[str, bytes]]]:
    """States that a crash may leave of what was written after a sync, the folder's files being `now`.

    Where one file has only grown since, the file system may have kept any part of the growth: cut anywhere,
    or of full length with zeros for the part that never reached the disk. Else only `now` itself is certain.
    """
    yield "as it was", now
    changed = [name for name in now if now[name] != synced.get(name)]
    if len(changed) != 1 or set(synced) != set(now):
        return
    (name,) = changed
    old, new = synced[name], now[name]
    if not new.startswith(old):
        return
    step = max((len(new) - len(old)) // n, 1)
    for size in range(len(old), len(new), step):
        yield f"{name} cut to {size} bytes", {**now, name: new[:size]}
        yield f"{name} zeros from {size}", {**now, name: new[:size] + bytes(len(new) - size)}


def write_image(target: Path, files: dict[str, bytes]) -> Path:
    shutil.rmtree(target, ignore_errors=True)
    for name, data in files.items():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_bytes(data)
    return target
