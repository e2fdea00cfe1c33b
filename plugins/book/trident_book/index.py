"""Kernels of the reference index: reference -> order slot, in open addressing, 8 bytes an entry.

An entry is `tag << 32 | slot`. The tag is 29 bits of a hash of `ref >> 3`, and the last 3 bits of the
reference: eight neighbours share a cache line, so new orders, whose references grow, mostly find their line
in the cache. Home of an entry:

    tag   | hash of ref >> 3, 29 bits       | ref & 7              |
          | its first bits: which line of 8 | which entry of the 8 |

Collisions go to the next entry. A removal closes the gap (no tombstones), and growing needs only the tags.
Two references may share a tag: the order's own reference decides.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_book.records import INDEX_BITS, SEED
from trident_core.jit import njit_entry, njit_inlined, njit_kernel

MIX_1: Final = np.uint64(0x9E3779B97F4A7C15)
MIX_2: Final = np.uint64(0xD6E8FEB86659FD93)
_0: Final = np.uint64(0)
_1: Final = np.uint64(1)
_3: Final = np.uint64(3)
_7: Final = np.uint64(7)
_32: Final = np.uint64(32)
_35: Final = np.uint64(35)
_SLOT: Final = np.uint64(0xFFFF_FFFF)

BITS_MIN: Final = 10
BITS_MAX: Final = 32


@njit_inlined
def tag_of(ref: Any, seed: Any) -> Any:
    """The 32-bit tag of a reference, as u64. `seed` is the book's own: nobody can make them collide."""
    mixed = ((ref >> _3) ^ seed) * MIX_1
    mixed = (mixed ^ (mixed >> _32)) * MIX_2
    return (mixed >> _35) << _3 | ref & _7


@njit_inlined
def home(tag: Any, bits: Any) -> Any:
    """Where an entry of this tag belongs in a table of 2**bits entries (`bits` is u64)."""
    return (tag >> (_35 - bits)) << _3 | tag & _7


@njit_inlined
def bits_of(st: Any) -> Any:
    return np.uint64(st.g[INDEX_BITS])


@njit_inlined
def find(st: Any, ref: Any) -> Any:
    """(position, slot) of a reference; slot 0: it is not there, and the position is where it would go."""
    index, bits = st.refs, bits_of(st)
    tag = tag_of(ref, np.uint64(st.g[SEED]))
    mask = (_1 << bits) - _1
    position = home(tag, bits)
    while True:
        entry = index[position]
        if entry == _0:
            return position, np.uint32(0)
        if entry >> _32 == tag:
            slot = np.uint32(entry & _SLOT)
            if st.orders[slot].ref == ref:
                return position, slot
        position = (position + _1) & mask


@njit_inlined
def home_of(st: Any, ref: Any) -> Any:
    """The position at which the search for a reference begins."""
    return home(tag_of(ref, np.uint64(st.g[SEED])), bits_of(st))


@njit_inlined
def guess(st: Any, ref: Any, position: Any) -> Any:
    """The position of a reference by its tag alone, from its home on; of an empty entry if there is none."""
    tag = tag_of(ref, np.uint64(st.g[SEED]))
    mask = (_1 << bits_of(st)) - _1
    while True:
        entry = st.refs[position]
        if entry == _0 or entry >> _32 == tag:
            return position
        position = (position + _1) & mask


@njit_inlined
def slot_at(st: Any, position: Any) -> Any:
    """The order slot of the entry at a position, 0 if it is empty."""
    return np.uint32(st.refs[position] & _SLOT)


@njit_inlined
def find_hinted(st: Any, ref: Any, position: Any) -> Any:
    """`find`, if the reference is not at the position where it was lately."""
    slot = slot_at(st, position)
    if slot > 0 and st.orders[slot].ref == ref:
        return position, slot
    return find(st, ref)


@njit_inlined
def put(st: Any, position: Any, ref: Any, slot: Any) -> None:
    """Enter a reference where `find` said it would go."""
    st.refs[position] = tag_of(ref, np.uint64(st.g[SEED])) << _32 | np.uint64(slot)


@njit_kernel
def remove(index: Any, bits: Any, position: Any) -> None:
    """Take an entry out, and move up those behind it that would no longer be found."""
    mask = (_1 << bits) - _1
    hole, at = position, position
    while True:
        at = (at + _1) & mask
        entry = index[at]
        if entry == _0:
            break
        if (at - home(entry >> _32, bits)) & mask >= (at - hole) & mask:
            index[hole] = entry
            hole = at
    index[hole] = _0


@njit_entry
def rehash(old: Any, new: Any, bits: Any) -> None:
    """Enter all entries of `old` into the empty table `new` of 2**bits entries."""
    mask = (_1 << bits) - _1
    for entry in old:
        if entry != _0:
            position = home(entry >> _32, bits)
            while new[position] != _0:
                position = (position + _1) & mask
            new[position] = entry
