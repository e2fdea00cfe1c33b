"""Which shard uses which order reference: a few bits for each, in pages, so that no two ever share one.

A book of one thread may let a message of one symbol reach an order of another, by its reference. Shards
cannot, so every reference belongs to the first shard that adds it, and `kernel.deal` stops at the first
message that would use it in another. References are near-dense and grow over a day: pages are few.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: References of a page, a power of two.
PAGE_BITS: Final = 16
#: Pages of a lower number are found without hashing: references below 2^30.
NEAR_PAGES: Final = 1 << 14
#: Bytes that all pages together may have. References beyond cannot be proven: `kernel.FAR`.
BYTES_MAX: Final = 1 << 27


class Owners(NamedTuple):
    """`near[page]`, or `places[i]` where `keys[i]` is a far page's number plus 1: where the words of a page
    begin in `marks`, plus 1; 0: it has none. `keys` is hashed, with open addressing.

    `marks`: u64 words, `bits` for each reference: 0 unknown, else its shard plus 1. `used[0]`: words in use.
    """

    near: NDArray[np.int64]
    keys: NDArray[np.uint64]
    places: NDArray[np.int64]
    marks: NDArray[np.uint64]
    used: NDArray[np.int64]


def bits_of(shards: int) -> int:
    """Bits that hold a shard plus 1: 2, 4 or 8."""
    return 2 if shards < 4 else 4 if shards < 16 else 8


def make_owners(shards: int, bytes_max: int = BYTES_MAX) -> Owners:
    """No reference has an owner. The memory is the system's until a page is used."""
    words = (1 << PAGE_BITS) * bits_of(shards) // 64
    pages = max(1, bytes_max // (8 * words))
    slots = 1 << (2 * pages).bit_length()
    zeros: Any = np.zeros
    return Owners(
        zeros(NEAR_PAGES, np.int64), zeros(slots, np.uint64), zeros(slots, np.int64),
        zeros(pages * words, np.uint64), zeros(1, np.int64),
    )  # fmt: skip
