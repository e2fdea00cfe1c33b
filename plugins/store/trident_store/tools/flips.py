"""`python -m trident_store.tools.flips`: a small store damaged, a byte at a time, and all tools asked.

What must hold: `verify` reports the damage, or the store still gives exactly what was appended; `repair`
leaves a store that verifies only if it gives exactly what was appended; `salvage` gives nothing that was not
appended, and accounts for every event that it does not give.

Of several faults at once some are what a power cut leaves: a slot of the mark torn, and a frame behind the
other slot torn too. Nothing can tell the two apart, so that a tail may then be taken for one that was never
acknowledged; what is given must still be a prefix.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from trident_core.dtypes import Events
from trident_core.errors import StoreError
from trident_core.session import Session
from trident_store.crashcheck import PATH, Run, read_all
from trident_store.crashmodel import CrashFileSystem, Disk
from trident_store.lsm.engine import LsmStore
from trident_store.lsm.layout import Shape
from trident_store.reference import ReferenceStore
from trident_store.tools.repair import repair
from trident_store.tools.salvage import Salvaged, Wreck, salvage, session_for
from trident_store.tools.verify import verify

SCRIPT: Final = "a9 s a7 a30 s a5 a60 s a9"


def small_store(script: str = SCRIPT) -> Disk:
    """A closed store with a log, tables of two levels and a manifest of several records."""

    def opener(mode: str, session: Session | None, files: CrashFileSystem) -> LsmStore:
        return LsmStore(
            PATH, mode, session, segment_bytes=2_048, sector_bytes=512, frame_events=2, filesystem=files,
            store_id=bytes(range(16)) if mode == "create" else None, fanout=2, background=False,
            shape=Shape(block_events=4, window_events=8, page_refs=3),
        )  # fmt: skip

    files = CrashFileSystem(exists=False)
    run = Run(opener, files)
    run.create()
    run.play(script)
    run.store.close()
    return {name: data for name, data in files.visible().items() if name != "lock"}


def events_of(disk: Disk) -> Events:
    """Everything a reader gets. Raises StoreError."""
    return read_all(ReferenceStore(PATH, "read", filesystem=CrashFileSystem(dict(disk))))


@dataclass(slots=True)
class Census:
    """What became of each damage, by kind of file; and every broken promise."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)


def judge(
    damaged: Disk, events: Events, what: str, kind: str, census: Census, *, tail_may_go: bool = False
) -> None:
    """Ask all three tools about one damaged disk. `tail_may_go`: a crash might explain a torn tail."""
    report = verify(CrashFileSystem(dict(damaged)), PATH, lambda done, total: None)
    if report.ok:
        seen = "seen, harmless" if report.findings else "harmless"
        census.counts[kind, f"verify: {seen}"] += 1
        if not _right(events_of(damaged), events, tail_may_go):
            census.violations.append(f"{what}: verify calls wrong data sound")
    else:
        census.counts[kind, "verify: damaged"] += 1
    files = CrashFileSystem(dict(damaged))
    done = repair(files, PATH)
    if done.after.ok:
        census.counts[kind, "repair: sound" if done.fixes else "repair: nothing to do"] += 1
        if not _right(events_of(files.visible()), events, tail_may_go):
            census.violations.append(f"{what}: repair makes wrong data look sound")
    else:
        census.counts[kind, "repair: damage left"] += 1
    problem, verdict = _salvaged(damaged, events, tail_may_go)
    census.counts[kind, f"salvage: {verdict}"] += 1
    if problem:
        census.violations.append(f"{what}: {problem}")


def _salvaged(damaged: Disk, events: Events, tail_may_go: bool) -> tuple[str, str]:
    """(broken promise, what was got)."""
    try:
        wreck = Wreck(CrashFileSystem(dict(damaged)), PATH)
        out = ReferenceStore(
            PATH, "create", session_for(wreck, None), filesystem=CrashFileSystem(exists=False)
        )
    except StoreError:
        return "", "refused"
    result = salvage(wreck, out)
    got = read_all(out)
    rows = {each.tobytes() for each in events}
    if any(each.tobytes() not in rows for each in got):
        return "salvage gives a wrong event", "wrong"
    if _same(got, events):
        return "", "everything"
    if tail_may_go and _right(got, events, tail_may_go):
        return "", "all but a tail"
    known = events[events["seq"] <= got["seq"].max(initial=0)] if tail_may_go else events
    return _unaccounted(result, got, known), "a part, with gaps"


def _unaccounted(result: Salvaged, got: Events, events: Events) -> str:
    if result.complete:
        return "salvage calls a part complete"
    lost = set(events["seq"].tolist()) - set(got["seq"].tolist())
    ranges = [(gap.first_seq, gap.last_seq or 1 << 63) for gap in result.gaps]
    if any(not any(low <= seq <= high for low, high in ranges) for seq in lost):
        return "salvage does not tell of a gap"
    return ""


def _right(got: Events, events: Events, tail_may_go: bool) -> bool:
    return _same(got, events[: len(got)] if tail_may_go else events)


def _same(one: Events, other: Events) -> bool:
    return one.tobytes() == other.tobytes()


def flips(every: int = 1, seed: int = 0, *, faults: int = 1) -> Census:
    """Flip one bit of every so manieth byte of each file; with more `faults`, others at random beside it."""
    disk, rng, census = small_store(), random.Random(seed), Census()
    events = events_of(disk)
    sites = [(name, at) for name, data in disk.items() for at in range(len(data))]
    for name, at in sites[rng.randrange(every) :: every]:
        damaged = dict(disk)
        for file, offset in [(name, at), *rng.sample(sites, faults - 1)]:
            data = bytearray(damaged[file])
            data[offset] ^= 1 << rng.randrange(8)
            damaged[file] = bytes(data)
        kind = name.rpartition(".")[2]
        torn_mark = damaged["durable"] != disk["durable"]  # only then could a crash explain a torn tail
        judge(damaged, events, f"{name} at {at}", kind, census, tail_may_go=faults > 1 and torn_mark)
    return census


def main() -> int:
    """Prints the census; 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m trident_store.tools.flips", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="only every so manieth byte")
    parser.add_argument("--faults", type=int, default=1, help="so many flips at a time")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    census = flips(arguments.every, arguments.seed, faults=arguments.faults)
    for (kind, what), count in sorted(census.counts.items()):
        print(f"{kind:<8} {what:<24} {count:>8,}")
    for violation in census.violations:
        print(f"VIOLATION: {violation}")
    print(f"{len(census.violations)} broken promises")
    return 1 if census.violations else 0


if __name__ == "__main__":
    raise SystemExit(main())
