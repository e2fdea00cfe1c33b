"""Which partition an event belongs to: its order (through all replaces), symbol, firm, or the whole stream.

An order's partition begins with the first event that names it and ends with its delete, or when its shares
are gone; then its key is used again. `U` goes on under the new reference.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import Events
from trident_core.jit import njit_entry, njit_inlined
from trident_query.sequence.question import KEYS_MAX, SequenceError

_FIRST_ROOM: Final = 1 << 12
#: MPIDs at most, and those that there is room for at first.
_FIRMS_MAX: Final = 1 << 16
_FIRST_FIRMS: Final = 1 << 8


@njit_inlined
def _place(refs: Any, ref: Any) -> Any:
    """Where a reference is, or the free place where it belongs. refs u64[2**k], 0 is free."""
    mask = refs.shape[0] - 1
    at = np.int64((ref * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while refs[at] != 0 and refs[at] != ref:
        at = (at + 1) & mask
    return at


@njit_inlined
def _remove(refs: Any, slots: Any, at: Any) -> None:
    """Free a place and move those that were pushed behind it."""
    mask = refs.shape[0] - 1
    hole, probe = at, (at + 1) & mask
    while refs[probe] != 0:
        home = np.int64((refs[probe] * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
        if ((probe - home) & mask) >= ((probe - hole) & mask):
            refs[hole], slots[hole] = refs[probe], slots[probe]
            hole = probe
        probe = (probe + 1) & mask
    refs[hole] = 0


@njit_inlined
def _mpid(word: Any) -> Any:
    """The MPID in the first four bytes of a word, its padding (spaces and NULs at the end) cut."""
    bits = np.uint64(32)
    while bits > 0:
        last = (word >> (bits - np.uint64(8))) & np.uint64(0xFF)
        if last != 0 and last != 32:
            break
        bits -= np.uint64(8)
    return word & ((np.uint64(1) << bits) - np.uint64(1))


@njit_inlined
def _firm_place(firms: Any, text: Any) -> Any:
    """Where an MPID is, or the free place where it belongs. firms u64[2**k + 1, 2]: text, number from 1 (0 is
    free); the last row has their count.
    """
    mask = firms.shape[0] - 2
    at = np.int64((text * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)) & mask
    while firms[at, 1] != 0 and firms[at, 0] != text:
        at = (at + 1) & mask
    return at


@njit_inlined
def _firm(firms: Any, text: Any) -> Any:
    """The number of an MPID, or 0: no room."""
    at, last = _firm_place(firms, text), firms.shape[0] - 1
    if firms[at, 1] == 0:
        if np.int64(firms[last, 1]) * 2 >= last:
            return np.int32(0)
        firms[last, 1] += np.uint64(1)
        firms[at, 0], firms[at, 1] = text, firms[last, 1]
    return np.int32(firms[at, 1])


@njit_entry
def assign(
    words: Any, refs: Any, slots: Any, left: Any, born: Any, firm: Any, firms: Any, free: Any, freed: Any,
    keys: Any, ends: Any, state: Any,
) -> int:  # fmt: skip
    """keys i32[n] and ends u8[n] for events as u64[n, 8]; 1: no room for one more order, 2: for one more
    MPID.

    state i64[4]: row to go on with, orders, free slots in `free`, freed slots in `freed`.
    """
    for i in range(state[0], words.shape[0]):
        word = words[i, 6]
        kind = (word >> np.uint64(32)) & np.uint64(0xFF)
        ref = words[i, 2]
        keys[i], ends[i] = -1, 0
        named = kind == 65 or kind == 70 or kind == 69 or kind == 67 or kind == 88 or kind == 68 or kind == 85
        if not named or ref == 0:
            continue
        if state[2] == 0 or 2 * (state[1] + 2) > refs.shape[0]:
            state[0] = i
            return 1
        at = _place(refs, ref)
        if refs[at] == 0:
            state[2] -= 1
            slot = free[state[2]]
            refs[at], slots[at] = ref, slot
            left[slot], born[slot], firm[slot] = -1, ref, 0
            state[1] += 1
        slot = slots[at]
        keys[i] = slot
        quantity = np.int64(words[i, 5])
        over = kind == 68
        if kind == 65 or kind == 70:
            left[slot] = quantity
            if kind == 70 and firms.shape[0] > 1:
                firm[slot] = _firm(firms, _mpid(words[i, 7]))
                if firm[slot] == 0:
                    state[0] = i
                    return 2
        elif kind == 85:
            left[slot] = quantity
            over = words[i, 3] == 0
            if words[i, 3] != ref and not over:
                _remove(refs, slots, at)
                at = _place(refs, words[i, 3])
                if refs[at] != 0:  # a reference that is in use: its order ends here, unseen
                    freed[state[3]] = slots[at]
                    state[3] += 1
                    state[1] -= 1
                refs[at], slots[at] = words[i, 3], slot
        elif kind != 68 and left[slot] >= 0:
            left[slot] -= quantity
            over = left[slot] <= 0
        if over:
            ends[i] = 1
            _remove(refs, slots, at)
            freed[state[3]] = slot
            state[3] += 1
            state[1] -= 1
    state[0] = words.shape[0]
    return 0


class OrderKeys:
    """Keys by order or, `by_firm`, by the MPID that the order was added with (others have no key)."""

    def __init__(self, *, by_firm: bool = False) -> None:
        self.by_firm = by_firm
        self.refs = np.zeros(2 * _FIRST_ROOM, np.uint64)
        self.slots = np.zeros(2 * _FIRST_ROOM, np.int32)
        self.left = np.zeros(_FIRST_ROOM, np.int64)
        self.born = np.zeros(_FIRST_ROOM, np.uint64)
        self.firm = np.zeros(_FIRST_ROOM, np.int32)
        self.firms = np.zeros((2 * _FIRST_FIRMS + 1 if by_firm else 0, 2), np.uint64)
        self.free = np.arange(_FIRST_ROOM, dtype=np.int32)[::-1].copy()
        self.counts = np.array([0, 0, _FIRST_ROOM, 0], np.int64)

    def of(self, events: Events) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int64]]:
        """keys i32[n], ends u8[n], and the slots that end in this batch (to be given back by `recycle`)."""
        words = np.ascontiguousarray(events).view("<u8").reshape(-1, 8)
        n = len(words)
        keys, ends, freed = np.empty(n, np.int32), np.empty(n, np.uint8), np.empty(2 * n + 1, np.int32)
        self.counts[0] = self.counts[3] = 0
        while why := assign(
            words, self.refs, self.slots, self.left, self.born, self.firm, self.firms, self.free, freed,
            keys, ends, self.counts,
        ):  # fmt: skip
            if why == 2:
                self._grow_firms()
            else:
                self._grow()
        ended = freed[: self.counts[3]].astype(np.int64)
        if self.by_firm:
            firms = np.where(keys >= 0, self.firm[keys], 0) - 1
            self.recycle(ended)
            return firms.astype(np.int32), np.zeros(0, np.uint8), ended[:0]
        return keys, ends, ended

    def recycle(self, ended: NDArray[np.int64]) -> None:
        have = int(self.counts[2])
        self.free[have : have + len(ended)] = ended
        self.counts[2] += len(ended)

    @property
    def key_count(self) -> int:
        return int(self.firms[-1, 1]) if self.by_firm else len(self.left)

    def _grow(self) -> None:
        if 2 * (self.counts[1] + 2) > len(self.refs):
            old, slots = self.refs, self.slots
            self.refs, self.slots = np.zeros(2 * len(old), np.uint64), np.zeros(2 * len(old), np.int32)
            rehash(old, slots, self.refs, self.slots)
        if self.counts[2] == 0:
            have = len(self.left)
            if 2 * have > KEYS_MAX:
                raise SequenceError(f"more than {KEYS_MAX:,} orders at a time, the cap on sequences")
            for name in ("left", "born", "firm", "free"):
                array = getattr(self, name)
                setattr(self, name, np.concatenate([array, np.zeros(have, array.dtype)]))
            self.free[:have] = np.arange(2 * have - 1, have - 1, -1)
            self.counts[2] = have

    def _grow_firms(self) -> None:
        old = self.firms
        if int(old[-1, 1]) >= _FIRMS_MAX:
            raise SequenceError(f"more than {_FIRMS_MAX:,} MPIDs, the cap on sequences by MPID")
        self.firms = np.zeros((2 * len(old) - 1, 2), np.uint64)
        rehash_firms(old, self.firms)

    def value(self, key: int) -> int | str:
        """What a key stands for: the reference that its order began with, or the MPID."""
        if not self.by_firm:
            return int(self.born[key])
        texts = self.firms[:-1]
        text = int(texts[texts[:, 1] == key + 1][0, 0])
        return text.to_bytes(8, "little").rstrip(b"\0 ").decode("utf-8", "surrogateescape")


@njit_entry
def rehash(old: Any, slots: Any, refs: Any, made: Any) -> None:
    for i in range(old.shape[0]):
        if old[i] != 0:
            at = _place(refs, old[i])
            refs[at], made[at] = old[i], slots[i]


@njit_entry
def rehash_firms(old: Any, made: Any) -> None:
    """MPIDs and their numbers into a larger, empty table."""
    last, end = old.shape[0] - 1, made.shape[0] - 1
    for i in range(last):
        if old[i, 1] != 0:
            at = _firm_place(made, old[i, 0])
            made[at, 0], made[at, 1] = old[i, 0], old[i, 1]
    made[end, 1] = old[last, 1]


class SymbolKeys:
    """Keys by symbol: the locate. Events of no symbol have none."""

    key_count = 1

    def of(self, events: Events) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int64]]:
        keys = events["locate"].astype(np.int64)
        self.key_count = max(self.key_count, int(keys.max(initial=0)) + 1)
        if self.key_count > KEYS_MAX:
            raise SequenceError(f"a locate of more than {KEYS_MAX:,}, the cap on sequences")
        keys[keys == 0] = -1
        return keys.astype(np.int32), np.zeros(0, np.uint8), np.zeros(0, np.int64)

    def recycle(self, ended: NDArray[np.int64]) -> None:
        """Symbols do not end."""

    def value(self, key: int) -> int:
        return key


class OneKey:
    """All events are one partition."""

    key_count = 1

    def of(self, events: Events) -> tuple[NDArray[np.int32], NDArray[np.uint8], NDArray[np.int64]]:
        return np.zeros(len(events), np.int32), np.zeros(0, np.uint8), np.zeros(0, np.int64)

    def recycle(self, ended: NDArray[np.int64]) -> None:
        """The stream does not end."""

    def value(self, key: int) -> str:
        return "all"


Keys = OrderKeys | SymbolKeys | OneKey


def keys_for(per: str) -> Keys:
    """Keys by "order", "mpid", "symbol" or "all"."""
    if per == "symbol":
        return SymbolKeys()
    return OneKey() if per == "all" else OrderKeys(by_firm=per == "mpid")
