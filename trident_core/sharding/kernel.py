"""Kernels of sharded books: deal a batch to the shards, and put back what they made of it."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_core.jit import njit_entry, njit_inlined, njit_kernel
from trident_core.sharding.owners import NEAR_PAGES, PAGE_BITS

#: What a message does with references: 1 uses `ref`, 2 brings `ref` in, 3 uses `ref` and brings `ref2` in.
_USES, _ADDS, _REPLACES = 1, 2, 3
_ROLES: Final = np.zeros(256, np.uint8)
_ROLES[[ord(letter) for letter in "ECXD"]] = _USES
_ROLES[[ord(letter) for letter in "AF"]] = _ADDS
_ROLES[ord("U")] = _REPLACES

#: Why `deal` stopped: it did not; a reference is another shard's; a reference has no page, and none is left;
#: a sequence number is not above the one before it in the batch, so that rows could not be merged by it.
DEALT, SHARED, FAR, BACK = range(4)

# Words of an EVENT.
_SEQ, _REF, _REF2, _WHO = 0, 2, 3, 6
_0: Final = np.uint64(0)
_1: Final = np.uint64(1)
_6: Final = np.uint64(6)
_63: Final = np.uint64(63)
_PAGE: Final = np.uint64(PAGE_BITS)
_IN_PAGE: Final = np.uint64((1 << PAGE_BITS) - 1)
_NEAR: Final = np.uint64(NEAR_PAGES)
_WORDS: Final = PAGE_BITS - 6  # a page has bits << _WORDS words
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_GOLD: Final = np.uint64(0x9E3779B1)
_32: Final = np.uint64(32)
_LOW8: Final = np.uint64(0xFF)
_LOW32: Final = np.uint64(0xFFFF_FFFF)


def home(locate: int, shards: int) -> int:
    """The shard of a locate: Fibonacci hashing, so that neighbours, often alike in size, part."""
    return ((locate * int(_GOLD) & int(_LOW32)) * shards) >> 32


@njit_kernel
def find_far(owners: Any, page: Any) -> Any:
    """The slot of a page, or the free one where it would go."""
    mask = np.uint64(len(owners.keys) - 1)
    slot = (page * _MIX) >> _32 & mask
    while owners.keys[slot] != _0 and owners.keys[slot] != page + _1:
        slot = (slot + _1) & mask
    return slot


@njit_kernel
def new_page(owners: Any, page: Any, bits: Any) -> Any:
    """Where the words of a page begin, now that it has some, plus 1; 0 if all are in use."""
    start = owners.used[0]
    if start + (bits << _WORDS) > len(owners.marks):
        return 0
    owners.used[0] = start + (bits << _WORDS)
    if page < _NEAR:
        owners.near[page] = start + 1
    else:
        slot = find_far(owners, page)
        owners.keys[slot] = page + _1
        owners.places[slot] = start + 1
    return start + 1


@njit_inlined
def claim(owners: Any, ref: Any, mine: Any, bits: Any, adds: Any) -> Any:
    """May the shard with the mark `mine` use `ref`? DEALT, and marked if it `adds` it; or why not."""
    page = ref >> _PAGE
    place = owners.near[page] if page < _NEAR else owners.places[find_far(owners, page)]
    if place == 0:
        if not adds:
            return DEALT
        place = new_page(owners, page, bits)
        if place == 0:
            return FAR
    bit = (ref & _IN_PAGE) * np.uint64(bits)
    word = np.uint64(place - 1) + (bit >> _6)
    shift = bit & _63
    owner = owners.marks[word] >> shift & ((_1 << np.uint64(bits)) - _1)
    if owner == mine:
        return DEALT
    if owner != _0:
        return SHARED
    if adds:
        owners.marks[word] |= mine << shift
    return DEALT


@njit_inlined
def copy_event(event: Any, to: Any) -> None:
    """All loads before all stores: else each store might change what is loaded next, and none is a vector."""
    a, b, c, d = event[0], event[1], event[2], event[3]
    e, f, g, h = event[4], event[5], event[6], event[7]
    to[0], to[1], to[2], to[3] = a, b, c, d
    to[4], to[5], to[6], to[7] = e, f, g, h


@njit_entry
def deal(
    words: Any,  # u64[n, 8]: EVENTs
    bits: Any,  # for each reference in `owners`
    owners: Any,
    counts: Any,  # i64[shards], zeros: to count the events of each shard
    dealt: Any,  # u64[shards, n, 8]: to write, the events of each shard
    index: Any,  # i32[shards, n]: to write, where in `words` each came from
) -> Any:
    """Deal events to shards: (how many, why the next was not)."""
    dealers = np.uint64(len(counts))
    last = _0
    for i in range(len(words)):
        who = words[i, _WHO]
        shard = ((who & _LOW32) * _GOLD & _LOW32) * dealers >> _32
        role = _ROLES[who >> _32 & _LOW8]
        why = DEALT
        if role:
            mine = shard + _1
            if role != _ADDS:
                why = claim(owners, words[i, _REF], mine, bits, False)
            if why == DEALT and role != _USES:
                entering = words[i, _REF] if role == _ADDS else words[i, _REF2]
                why = claim(owners, entering, mine, bits, True)
        if words[i, _SEQ] <= last and i > 0:
            why = BACK
        if why != DEALT:
            return i, why
        last = words[i, _SEQ]
        at = counts[shard]
        counts[shard] = at + 1
        index[shard, at] = i
        copy_event(words[i], dealt[shard, at])
    return len(words), DEALT


@njit_entry
def put_back(tops: Any, effects: Any, index: Any, all_tops: Any, all_effects: Any) -> None:
    """Copy rows of a shard to where their events were. Of an output that is not wanted, there are no rows."""
    if len(tops):
        for i in range(len(index)):
            copy_event(tops[i], all_tops[index[i]])
    if len(effects):
        for i in range(len(index)):
            for j in range(4):
                all_effects[index[i], j] = effects[i, j]
