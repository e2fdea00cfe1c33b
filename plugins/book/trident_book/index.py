"""Kernels of the reference index: reference -> order slot.

A hash table of buckets, each a cache line: 8 tags of 32 bits, then the 8 order slots. A bucket is searched
with one comparison of eight tags, so a look-up has no loop to mispredict. Four neighbouring references share
a bucket: new orders, whose references grow, mostly find theirs in the cache.

    hash of ref >> 2, 64 bits:   | bucket: the highest | … | tag: 29 of the middle | … |
    tag: those 29 bits, ref & 3, and a 1, for 0 is empty

An entry whose bucket is full goes to the next one with room. Each bucket counts the entries that went past
it so: a search ends at a bucket that nothing went past, and a removal needs no tombstone. Two references may
share a tag: the order's own reference decides.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.machine import lowest_bit, matches
from trident_book.records import INDEX_BITS, SEED
from trident_core.jit import njit_entry, njit_inlined

MIX_1: Final = np.uint64(0x9E3779B97F4A7C15)
MIX_2: Final = np.uint64(0xD6E8FEB86659FD93)
_0: Final = np.uint32(0)
_1: Final = np.uint64(1)
_2: Final = np.uint64(2)
_3: Final = np.uint64(3)
_4: Final = np.uint64(4)
_8: Final = np.uint64(8)
_32: Final = np.uint64(32)
_64: Final = np.uint64(64)
_TAG: Final = np.uint64(0x1FFF_FFFF)
_TAG_AT: Final = np.uint64(8)

#: Entries of a bucket, and the words it takes.
BUCKET: Final = 8
WORDS: Final = 16
BITS_MIN: Final = 7
BITS_MAX: Final = 28  # positions are numbers of 32 bits
#: A table is at most half full.
ORDERS_MAX: Final = (BUCKET // 2) << BITS_MAX


@njit_inlined
def hash_of(st: Any, ref: Any) -> Any:
    """64 bits. The seed is the book's own, so nobody can choose references that meet.

    One multiplication would do for references at random, but not for those in a row: many a factor lays
    them in heaps (Steinhaus' three gaps).
    """
    mixed = ((ref >> _2) ^ np.uint64(st.g[SEED])) * MIX_1
    return (mixed ^ (mixed >> _32)) * MIX_2


@njit_inlined
def tag_of(hashed: Any, ref: Any) -> Any:
    return np.uint32(((hashed >> _TAG_AT) & _TAG) << _3 | (ref & _3) << _1 | _1)


@njit_inlined
def bucket_of(st: Any, hashed: Any) -> Any:
    return hashed >> (_64 - np.uint64(st.g[INDEX_BITS]))


@njit_inlined
def next_bucket(st: Any, bucket: Any) -> Any:
    return (bucket + _1) & ((_1 << np.uint64(st.g[INDEX_BITS])) - _1)


@njit_inlined
def find(st: Any, ref: Any) -> Any:
    """The order slot of a reference, 0 if it is not there."""
    hashed = hash_of(st, ref)
    tag, bucket = tag_of(hashed, ref), bucket_of(st, hashed)
    while True:
        found = np.uint64(matches(st.refs, bucket << _4, tag))
        while found:
            slot = st.refs[(bucket << _4) + _8 + lowest_bit(found)]
            if st.orders[slot].ref == ref:
                return slot
            found &= found - _1
        if st.passed[bucket] == _0:
            return _0
        bucket = next_bucket(st, bucket)


@njit_inlined
def find_hinted(st: Any, ref: Any, slot: Any) -> Any:
    """`find`, if the reference is not that of the order in the slot where it was lately."""
    order = st.orders[slot]
    if order.ref == ref and order.qty > np.uint64(0):
        return slot
    return find(st, ref)


@njit_inlined
def guess(st: Any, ref: Any) -> Any:
    """An order slot by the tag alone, from the first bucket alone; 0 if it is not there."""
    hashed = hash_of(st, ref)
    bucket = bucket_of(st, hashed) << _4
    found = matches(st.refs, bucket, tag_of(hashed, ref))
    slot = st.refs[bucket + _8 + (lowest_bit(np.uint64(found)) & np.uint64(7))]
    return slot if found else _0


@njit_inlined
def put(st: Any, ref: Any, slot: Any) -> None:
    """Enter a reference that is not there. The table has room: `kernel.room` sees to it."""
    hashed = hash_of(st, ref)
    bucket = bucket_of(st, hashed)
    while True:
        free = matches(st.refs, bucket << _4, _0)
        if free:
            break
        st.passed[bucket] += np.uint32(1)
        bucket = next_bucket(st, bucket)
    position = (bucket << _4) + lowest_bit(np.uint64(free))
    st.refs[position] = tag_of(hashed, ref)
    st.refs[position + _8] = slot
    st.orders[slot].position = position


@njit_inlined
def remove(st: Any, ref: Any, position: Any) -> None:
    """Take out the entry of a reference, which is at `position`."""
    st.refs[np.uint64(position)] = _0
    bucket = bucket_of(st, hash_of(st, ref))
    while bucket != np.uint64(position) >> _4:
        st.passed[bucket] -= np.uint32(1)
        bucket = next_bucket(st, bucket)


@njit_entry
def rehash(old: Any, st: Any) -> None:
    """Enter all entries of the table `old` into the empty one of `st`."""
    for bucket in range(len(old) // WORDS):
        for k in range(BUCKET):
            if old[np.uint64(bucket * WORDS + k)] != _0:
                slot = old[np.uint64(bucket * WORDS + BUCKET + k)]
                put(st, st.orders[slot].ref, slot)
