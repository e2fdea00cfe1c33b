"""The invariants of the numba book, recomputed from its arrays (records.State) without its kernels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_book import index, records
from trident_book.records import State

_SLOT = 0xFFFF_FFFF


def violations(st: State) -> list[str]:
    """All violations in words, empty when sound (rule BOOK-31 of docs/contracts/book.md)."""
    return list(_Audit(st).run())


class _Audit:
    """One pass over everything. Columns are lists: they are walked item by item."""

    def __init__(self, st: State) -> None:
        self.st = st
        self.g: list[int] = st.g.tolist()
        self.orders = _columns(st.orders[: self.g[records.ORDER_END]])
        self.levels = _columns(st.levels[: self.g[records.LEVEL_END]])
        self.sides = _columns(st.sides[: 2 * self.g[records.SYMBOL_END]])
        self.queued: set[int] = set()  # order slots met in a queue
        self.placed: set[int] = set()  # level slots met in a side

    def run(self) -> Iterator[str]:
        ends = {"orders": records.ORDER_END, "levels": records.LEVEL_END, "tops": records.SYMBOL_END,
                "keys": records.CHUNK_END}  # fmt: skip
        for name, at in ends.items():
            if not 1 <= self.g[at] <= len(getattr(self.st, name)):
                yield f"the pool of {name} is used to {self.g[at]} of {len(getattr(self.st, name))}"
                return
        if self.st.levels[0].tobytes().strip(b"\0") or self.st.sides[:2].tobytes().strip(b"\0"):
            yield "a null slot is not empty"
        yield from self.locates()
        for side_at in range(2, len(self.sides["n"])):
            locate, letter = self.st.tops["locate"][side_at >> 1], "BS"[side_at & 1]
            yield from (f"locate {locate} side {letter}: {problem}" for problem in self.side(side_at))
        yield from self.chunks()
        yield from self.free(
            "order", self.orders["next"], self.orders["qty"], records.ORDER_FREE, self.queued
        )
        yield from self.free(
            "level", self.levels["next"], self.levels["count"], records.LEVEL_FREE, self.placed
        )
        if len(self.queued) != self.g[records.LIVE]:
            yield f"{len(self.queued)} orders are queued, but {self.g[records.LIVE]} are said to live"
        yield from self.index()

    def locates(self) -> Iterator[str]:
        """Every symbol is found by its locate, and nothing else is."""
        far = {int(entry) >> 32: int(entry) & _SLOT for entry in self.st.far[self.st.far > 0]}
        locates = self.st.tops["locate"][1 : self.g[records.SYMBOL_END]].tolist()
        for symbol, locate in enumerate(locates, 1):
            found = int(self.st.near[locate]) if locate < records.NEAR else far.get(locate, 0)
            if found != symbol:
                yield f"locate {locate} leads to symbol {found} instead of {symbol}"
        known = int(np.count_nonzero(self.st.near)) + len(far)
        if known != len(locates) or len(far) != self.g[records.FAR_LOCATES]:
            yield f"{known} locates lead to {len(locates)} symbols"

    def side(self, at: int) -> Iterator[str]:
        start, n, cap = (self.sides[name][at] for name in ("start", "n", "cap"))
        if n > cap or start + cap > self.g[records.CHUNK_END]:
            yield f"{n} levels in a chunk from {start} of {cap}"
            return
        base, tick, bits = (self.sides[name][at] for name in ("base", "tick", "bits"))
        window = {base + k * tick: int(self.st.window[at * records.WINDOW + k])
                  for k in range(records.WINDOW) if bits >> k & 1}  # fmt: skip
        keys = self.st.keys[start : start + n].tolist()
        outside = dict(zip(keys, self.st.slots[start : start + n].tolist(), strict=True))
        if keys != sorted(set(keys)):
            yield "prices are not sorted"
        if tick and self.sides["inverse"][at] * (tick >> self.sides["twos"][at]) % (1 << 64) != 1:
            yield f"the tick {tick} cannot be divided by"
        inside = [key for key in keys if tick and (key - base) % tick == 0 and 0 <= key - base < 64 * tick]
        yield from (f"the level of key {key} stands outside its window" for key in inside)
        both = window | outside
        best = both[max(both)] if both else 0
        if self.sides["best"][at] != best:
            yield f"the best level is said to be in slot {self.sides['best'][at]}, and is in {best}"
        for key, slot in [*window.items(), *outside.items()]:
            if not 0 < slot < len(self.levels["qty"]):
                yield f"a level in slot {slot}, which is not used"
                continue
            if slot in self.placed:
                yield f"the level in slot {slot} stands twice"
                continue
            self.placed.add(slot)
            price = ~key if at & 1 else key
            says = tuple(self.levels[name][slot] for name in ("price", "side"))
            if says != (price, at):
                yield f"the level at {price} says it is {says[0]} of {_side(says[1])}"
            yield from (f"price {price}: {problem}" for problem in self.level(slot))

    def level(self, slot: int) -> Iterator[str]:
        """The queue of a level, walked from its head."""
        total = count = previous = 0
        at = self.levels["head"][slot]
        if at == 0:
            yield "empty level"
        while at:
            if not at < len(self.orders["qty"]):
                yield f"an order in slot {at}, which is not used"
                break
            if at in self.queued:
                yield f"reference {self.orders['ref'][at]} is queued twice"
                break
            self.queued.add(at)
            yield from self.order(slot, at, previous)
            total += self.orders["qty"][at]
            count += 1
            previous, at = at, self.orders["next"][at]
        if self.levels["tail"][slot] != previous:
            yield f"the tail is said to be in slot {self.levels['tail'][slot]}, and is in {previous}"
        if self.levels["qty"][slot] != total:
            yield f"total {self.levels['qty'][slot]}, but the orders sum to {total}"
        if self.levels["count"][slot] != count:
            yield f"count {self.levels['count'][slot]}, but there are {count} orders"

    def order(self, level: int, at: int, previous: int) -> Iterator[str]:
        ref = self.orders["ref"][at]
        if self.orders["qty"][at] == 0:
            yield f"reference {ref} has quantity 0"
        if self.orders["prev"][at] != previous:
            yield f"reference {ref} does not lead back to the order before it"
        says = [self.orders[name][at] for name in ("level", "price", "side")]
        if says != [level, *(self.levels[name][level] for name in ("price", "side"))]:
            yield f"reference {ref} is queued at a level that is not its own"

    def chunks(self) -> Iterator[str]:
        """The chunks of the sides and the free ones cover the arena, none twice."""
        spans = [(0, records.CHUNK_MIN)]
        spans += [(s, cap) for s, cap in zip(self.sides["start"], self.sides["cap"], strict=True) if cap]
        limit = self.g[records.CHUNK_END] // records.CHUNK_MIN
        for size_class in range(32):
            start, size = self.g[records.CHUNK_FREE + size_class], records.CHUNK_MIN << size_class
            while start and len(spans) <= limit:
                spans.append((start, size))
                start = int(self.st.keys[start]) if start < len(self.st.keys) else 0
        end = 0
        for start, size in sorted(spans):
            if start != end:
                yield f"the arena has a gap or an overlap at {min(start, end)}"
                return
            end = start + size
        if end != self.g[records.CHUNK_END]:
            yield f"the chunks end at {end} instead of {self.g[records.CHUNK_END]}"

    def free(
        self, what: str, following: list[int], used: list[int], head: int, taken: set[int]
    ) -> Iterator[str]:
        """Every slot of a pool is either in use or free, and a free one is empty."""
        free: set[int] = set()
        slot = self.g[head]
        while slot and slot not in free and 0 < slot < len(following):
            free.add(slot)
            if used[slot]:
                yield f"the free {what} in slot {slot} is not empty"
            slot = following[slot]
        if slot:
            yield f"the free {what}s lead to slot {slot}, which is no new one"
        if free & taken:
            yield f"{what}s are free and in use: slots {sorted(free & taken)[:8]}"
        lost = set(range(1, len(following))) - free - taken
        if lost:
            yield f"{what}s are neither free nor in use: slots {sorted(lost)[:8]}"

    def index(self) -> Iterator[str]:
        buckets = 1 << self.g[records.INDEX_BITS]
        if len(self.st.passed) != buckets or len(self.st.refs) != buckets * index.WORDS:
            yield f"the index has {len(self.st.passed)} buckets instead of 2**{self.g[records.INDEX_BITS]}"
            return
        table = self.st.refs.reshape(buckets, 2, index.BUCKET)
        at, k = np.nonzero(table[:, 0])
        tags, slots = table[at, 0, k], table[at, 1, k].astype(np.int64)
        led_to = set(slots.tolist())
        lost = sorted(self.queued - led_to)
        yield from (
            f"reference {self.orders['ref'][s]} is queued, but the index does not lead to it" for s in lost
        )
        nowhere = sorted(led_to - self.queued)
        yield from (f"the index leads to slot {slot}, which is in no queue" for slot in nowhere)
        if len(led_to) != len(slots):
            yield "the index leads to an order twice"
        known = slots < len(self.orders["ref"])
        at, tags, slots, positions = at[known], tags[known], slots[known], (at * index.WORDS + k)[known]
        refs = self.st.orders["ref"][slots]
        hashed = hashes(refs, self.g[records.SEED])
        wrong = tags != tags_of(hashed, refs)
        yield from (
            f"reference {ref} has another reference's entry in the index" for ref in refs[wrong].tolist()
        )
        misplaced = self.st.orders["position"][slots] != positions
        yield from (
            f"reference {ref} is said to have another entry of the index" for ref in refs[misplaced].tolist()
        )
        yield from self.passing(at, hashed >> np.uint64(64 - self.g[records.INDEX_BITS]))

    def passing(self, at: NDArray[np.int64], homes: NDArray[np.uint64]) -> Iterator[str]:
        """Each bucket counts the entries that went past it."""
        buckets = len(self.st.passed)
        passed = np.zeros(buckets, np.int64)
        for there, home in zip(at.tolist(), homes.astype(np.int64).tolist(), strict=True):
            for step in range((there - home) % buckets):
                passed[(home + step) % buckets] += 1
        wrong = np.flatnonzero(passed != self.st.passed)
        if len(wrong):
            yield f"{len(wrong)} buckets of the index miscount the entries that went past them"


def _side(at: int) -> str:
    return f"symbol {at >> 1}, side {'BS'[at & 1]}"


def _columns(rows: NDArray[Any]) -> dict[str, list[int]]:
    return {name: rows[name].tolist() for name in rows.dtype.names or ()}


def hashes(refs: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """`index.hash_of` of an array."""
    mixed = ((refs >> np.uint64(2)) ^ np.uint64(seed)) * index.MIX_1
    return (mixed ^ (mixed >> np.uint64(32))) * index.MIX_2


def tags_of(hashed: NDArray[np.uint64], refs: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """`index.tag_of` of an array."""
    tags = (hashed >> np.uint64(8)) % np.uint64(1 << 29) << np.uint64(3)
    return (tags | (refs & np.uint64(3)) << np.uint64(1) | np.uint64(1)).astype(np.uint32)
