"""What a disk may hold after a power cut: the states of files and names between two syncs.

What a disk may hold after a crash is more than "everything up to some call". Until a file is synced each of
its 512-byte sectors is, on its own, as it was, as it was meant to be at any moment since, or garbled; its
size is any that it had since; and until a folder is synced each create, unlink and rename in it has happened
or not. Each state of a `CrashPoint` has a number, so that a violation can be met again.

Sectors are written whole or not (garbled: half of it is), which disks promise; a disk that lies about syncs
is beyond any store.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

SECTOR: Final = 512
#: A point with at most so many states is enumerated: its states are all of them, in a mixed order.
ENUMERATED: Final = 4_096

Disk = dict[str, bytes]  # file name -> content: one state of the folder after a crash


@dataclass(slots=True)
class FileState:
    """A file: what programs see (`cache`), what a crash cannot take (`disk`), and what came in between."""

    cache: bytearray = field(default_factory=bytearray)
    disk: bytes = b""
    dirty: dict[int, list[bytes]] = field(default_factory=dict)  # sector -> its contents since the last sync
    sizes: list[int] = field(default_factory=list)  # sizes since the last sync

    def changed(self, start: int, end: int) -> None:
        """Note the present contents of the sectors that [start, end) touches."""
        for sector in range(start // SECTOR, -(-end // SECTOR)):
            now = bytes(self.cache[sector * SECTOR : (sector + 1) * SECTOR]).ljust(SECTOR, b"\0")
            self.dirty.setdefault(sector, []).append(now)
        self.sizes.append(len(self.cache))

    def write(self, data: bytes | bytearray | memoryview, offset: int) -> None:
        if len(self.cache) < offset:
            self.cache.extend(bytes(offset - len(self.cache)))
        self.cache[offset : offset + len(data)] = data
        self.changed(offset, offset + len(data))

    def resize(self, size: int) -> None:
        """Cut, or fill with zeros."""
        if size > len(self.cache):
            self.cache.extend(bytes(size - len(self.cache)))
            self.sizes.append(size)
            return
        del self.cache[size:]
        if size % SECTOR:
            self.changed(size, size + 1)
        else:
            self.sizes.append(size)

    def synced(self) -> None:
        """The dirty sectors and the size reach the disk; what a failed sync lost does not."""
        self.disk = self._with_dirty()
        self.dirty, self.sizes = {}, []

    def lost(self) -> None:
        """A sync failed: what was dirty counts as clean, and is not on the disk."""
        self.dirty, self.sizes = {}, []

    def forget(self) -> None:
        """Clean bytes are read from the disk again."""
        self.cache = bytearray(self._with_dirty())

    def _with_dirty(self) -> bytes:
        size = self.sizes[-1] if self.sizes else len(self.disk)
        return self.after_crash(size, [(sector, versions[-1]) for sector, versions in self.dirty.items()])

    def copy(self) -> FileState:
        return FileState(
            bytearray(self.cache), self.disk, {k: list(v) for k, v in self.dirty.items()}, list(self.sizes)
        )

    def sector_options(self) -> list[Options]:
        """For each dirty sector: what it may hold after a crash, first without and then with garbling."""
        options: list[Options] = []
        for sector, versions in sorted(self.dirty.items()):
            old = self.disk[sector * SECTOR : (sector + 1) * SECTOR].ljust(SECTOR, b"\0")
            new = versions[-1]
            half = new[: SECTOR // 2] + old[SECTOR // 2 :]
            noise = new.translate(_NOISE)
            whole = [(sector, each) for each in dict.fromkeys([old, new, *versions])]
            spoiled = [(sector, each) for each in (half, noise) if (sector, each) not in whole]
            options.append(Options(whole, whole + spoiled, whole.index((sector, new))))
        return options

    def after_crash(self, size: int, sectors: Sequence[tuple[int, bytes]]) -> bytes:
        content = bytearray(self.disk[:size].ljust(size, b"\0"))
        for sector, data in sectors:
            start = sector * SECTOR
            if start < size:
                content[start : min(start + SECTOR, size)] = data[: size - start]
        return bytes(content)


_NOISE: Final = bytes(byte ^ 0x5A for byte in range(256))


class Options(NamedTuple):
    """What one uncertain thing may turn out as. In both lists the old comes first; `newest` is the place, in
    both, of what was meant last."""

    whole: list[Any]  # without garbling
    every: list[Any]
    newest: int = 1


class NameChange(NamedTuple):
    """One create, unlink or rename that no sync of its folder has made certain: it happened or not, as a
    whole. `removed` and `added` are (name, file number); a folder's own making has no name."""

    removed: tuple[str, int] | None
    added: tuple[str, int] | None

    @property
    def makes_folder(self) -> bool:
        return self.removed is None and self.added is None


@dataclass(slots=True)
class CrashPoint:
    """The folder at one moment; a power cut now may leave any of its states."""

    files: dict[int, FileState]
    disk_names: dict[str, int]
    changes: tuple[NameChange, ...]
    note: tuple[int, ...]  # what the test wanted to remember of this moment
    garbling: bool = True  # may a sector hold half of what was written, or noise?
    _choices: list[Options] | None = None
    _orders: dict[str, list[int]] = field(default_factory=dict)

    def choices(self) -> list[Options]:
        """The uncertain things: names, then each dirty file's size and sectors."""
        if self._choices is None:
            self._choices = [Options([False, True], [False, True]) for _ in self.changes]
            for file in self._dirty().values():
                sizes = list(dict.fromkeys([len(file.disk), len(file.cache), *file.sizes]))
                size = Options(sizes, sizes, sizes.index(len(file.cache)))
                self._choices += [size, *file.sector_options()]
            if not self.garbling:
                self._choices = [options._replace(every=options.whole) for options in self._choices]
        return self._choices

    @property
    def count(self) -> int:
        """How many states there are."""
        return math.prod(len(options.every) for options in self.choices())

    def state(self, number: int, key: str) -> Disk:
        """State `number`, from 0, of this point for this key, always the same. The first two are: nothing
        since the last sync has reached the disk, all has. With few states these are then all there are, in an
        order that the key mixes, and again from the start; else they are drawn at random, in turn: nothing
        garbled, one thing perhaps, everything perhaps."""
        choices = self.choices()
        if number < 2:
            return self._build([options.every[options.newest * number] for options in choices])
        total = self.count
        if total <= ENUMERATED:
            if key not in self._orders:
                self._orders[key] = random.Random(key).sample(range(total), total)
            return self._build(self._decoded(self._orders[key][(number - 2) % total]))
        return self._build(_drawn(choices, number, random.Random(f"{key}:{number}")))

    def states(self, limit: int, rng: random.Random) -> Iterator[Disk]:
        """Every state; when there are more than `limit`, a sample that has all-old and all-new in it."""
        if self.count <= limit:
            for pick in itertools.product(*(options.every for options in self.choices())):
                yield self._build(list(pick))
            return
        key = str(rng.random())
        for number in range(limit):
            yield self.state(number, key)

    def _decoded(self, code: int) -> list[Any]:
        pick = []
        for options in self.choices():
            code, i = divmod(code, len(options.every))
            pick.append(options.every[i])
        return pick

    def _dirty(self) -> dict[int, FileState]:
        return {number: file for number, file in sorted(self.files.items()) if file.dirty or file.sizes}

    def _build(self, pick: list[Any]) -> Disk:
        names = dict(self.disk_names)
        at = 0
        for change in self.changes:
            happened = pick[at]
            at += 1
            if change.makes_folder and not happened:
                return {}
            if happened and change.removed is not None and names.get(change.removed[0]) == change.removed[1]:
                del names[change.removed[0]]
            if happened and change.added is not None:
                names[change.added[0]] = change.added[1]
        contents = {number: file.disk for number, file in self.files.items()}
        for number, file in self._dirty().items():
            end = at + 1 + len(file.dirty)
            contents[number] = file.after_crash(pick[at], pick[at + 1 : end])
            at = end
        return {name: contents[number] for name, number in names.items()}


def _drawn(choices: Sequence[Options], number: int, rng: random.Random) -> list[Any]:
    turn, lucky = number % 3, rng.randrange(len(choices))
    return [
        rng.choice(options.every if turn == 1 or (turn == 0 and i == lucky) else options.whole)
        for i, options in enumerate(choices)
    ]
