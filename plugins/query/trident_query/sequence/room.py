"""Room that grows with the data up to a cap: a value for each key, a pool of nodes in a free list."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_query.sequence.question import KEYS_MAX, OPEN_MAX, SequenceError


def grow(array: NDArray[Any], keys: int, fill: int = 0) -> NDArray[Any]:
    """The array with room for so many keys."""
    if keys <= len(array):
        return array
    if keys > KEYS_MAX:
        raise SequenceError(f"more than {KEYS_MAX:,} keys at a time, the cap on sequences")
    shape = (max(keys, min(2 * len(array), KEYS_MAX)), *array.shape[1:])
    made = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)
    made[: len(array)] = array
    return made


def pool(nodes: int, words: int) -> NDArray[np.int64]:
    """Nodes in a free list: row 0 holds its head (last word) and the number of nodes in use (word 0)."""
    made = np.zeros((nodes, words), np.int64)
    made[:, -1] = np.arange(1, nodes + 1)
    made[-1, -1] = -1
    return made


def grown(nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """A pool twice as large; the new nodes are the first to be taken."""
    n = len(nodes)
    if n >= OPEN_MAX:
        raise SequenceError(
            f"more than {OPEN_MAX:,} matches that are not final or open starts, the cap on sequences",
            hint="bound the pattern by --within, or search a part of the day",
        )
    made = pool(2 * n, nodes.shape[1])
    made[:n] = nodes
    made[n:, -1] = np.append(np.arange(n + 1, 2 * n), nodes[0, -1])
    made[0, -1] = n
    return made
