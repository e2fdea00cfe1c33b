"""Rows of several shards in the order of the input again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.jit import njit_entry

Rows = NDArray[Any]


def merge_rows(parts: Sequence[Rows], key: str) -> Rows:
    """One array of all rows of one dtype, by the column `key`; each part is sorted by it.

    Where keys are equal, those of an earlier part come first. The part itself if it is one.
    """
    parts = [part for part in parts if len(part)] or [parts[0]]
    if len(parts) == 1:
        return parts[0]
    size = parts[0].dtype.itemsize
    joined = np.concatenate([part.view(f"V{size}") for part in parts])
    keys = np.concatenate([part[key] for part in parts]).astype(np.uint64, copy=False)
    ends = np.cumsum([len(part) for part in parts])
    nexts = ends - [len(part) for part in parts]
    out = np.empty_like(joined)
    bytes_each = 4 if size % 4 == 0 else 1
    unit = np.dtype(f"u{bytes_each}")
    merge(
        joined.view(unit).reshape(-1, size // bytes_each),
        keys,
        nexts,
        ends,
        out.view(unit).reshape(-1, size // bytes_each),
    )
    return out.view(parts[0].dtype)


@njit_entry
def merge(rows: Any, keys: Any, nexts: Any, ends: Any, out: Any) -> None:
    """Merge runs of `rows`, from `nexts[i]` to `ends[i]`, by `keys`; `nexts` is written."""
    for i in range(len(out)):
        best = -1
        for run in range(len(ends)):
            if nexts[run] < ends[run] and (best < 0 or keys[nexts[run]] < keys[nexts[best]]):
                best = run
        at = nexts[best]
        nexts[best] = at + 1
        for j in range(out.shape[1]):
            out[i, j] = rows[at, j]
