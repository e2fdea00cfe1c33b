"""The streaming pass for patterns that have one search under way in a partition at most, as most have.

Such a search needs a state and the row that it began at, and both fit one word: a cell, `row << 16 | state`.
So a row costs one line of memory and no list of things to do: all that it may do (note a start, give a match)
is done by masks, and whether it was wanted only decides if the next row writes over it. A branch on it would
cost more than all of that, because which kind of row comes next is chance to the processor.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from trident_core.jit import njit_entry, njit_inlined
from trident_core.prefetch import prefetch

#: Rows that are passed through before their matches are written out; 12 bits of a hit say which one it was.
BLOCK: Final = 2048
#: Rows that a cell can hold are at least -ROW_END, and less than ROW_END.
ROW_END: Final = 1 << 47


@njit_inlined
def _block(
    symbols: Any, keys: Any, rows: Any, ends: Any, letters: Any, table: Any, width: Any, cells: Any,
    hits: Any, begin: Any, last: Any, one_row: Any, may_end: Any, stop: Any,
) -> Any:  # fmt: skip
    """Pass through the rows from `begin` to `last`; the number of hits: first row << 16 | rows << 12 | place.

    Where an entry is missing, stop is the row, symbol, letter and state. One copy is compiled for each of the
    two ways that it is called in.
    """
    n = np.uint64(0)
    final = np.uint64(keys.shape[0] - 1)
    from_row = rows[0]
    for i in range(begin, last):
        prefetch(cells, np.uint64(np.uint32(keys[min(i + np.uint64(24), final)])))
        if keys[i] < 0:
            continue
        key = np.uint64(np.uint32(keys[i]))
        cell = cells[key]
        letter = np.uint64(letters[symbols[i]])
        entry = np.int64(table[np.uint64(cell & 0xFFFF) * width + letter])
        if entry < 0:
            stop[0], stop[1], stop[2], stop[3] = i, symbols[i], letter, cell & 0xFFFF
            break
        row = from_row + np.int64(i) if one_row else rows[i]
        other = cell ^ (row << 16)
        following = entry & 0xFFFF
        if may_end:
            following &= np.int64(ends[i]) - 1
        cells[key] = (cell ^ (other & -(entry >> 16 & 1))) & -65536 | following
        first = cell ^ (other & -(entry >> 18 & 1))
        hits[n] = first & -65536 | entry >> 19 << 12 | np.int64(i - begin)
        n += np.uint64(entry >> 17 & 1)
    return n


@njit_entry
def single(
    symbols: Any, keys: Any, rows: Any, times: Any, ends: Any, letters: Any, table: Any, width: Any,
    cells: Any, hits: Any, out: Any, stop: Any,
) -> int:  # fmt: skip
    """Final matches into out[stop[4]:]; arguments as of `kernels.spans`, except:

    table i32[states * width], `Operations.flags` << 16 | state; cells i64[keys]; hits i64[BLOCK].
    """
    one_row, one_time, may_end = rows.shape[0] == 1, times.shape[0] == 1, ends.shape[0] > 0
    n, wide, why = np.uint64(stop[4]), np.uint64(width), 0
    while why == 0 and stop[0] < symbols.shape[0]:
        if out.shape[0] - np.int64(n) < 2048:
            why = 3
            break
        begin = np.uint64(stop[0])
        last = np.uint64(min(stop[0] + 2048, symbols.shape[0]))
        stop[0] = last
        if one_row and not may_end:
            found = _block(
                symbols, keys, rows, ends, letters, table, wide, cells, hits, begin, last, True, False, stop
            )  # fmt: skip
        else:
            found = _block(
                symbols, keys, rows, ends, letters, table, wide, cells, hits, begin, last, one_row, may_end,
                stop,
            )  # fmt: skip
        for at in range(found):
            hit = hits[at]
            i = begin + np.uint64(hit & 0x7FF)
            out[n, 0], out[n, 1], out[n, 3] = keys[i], hit >> 16, hit >> 12 & 1
            out[n, 2] = rows[0] + np.int64(i) if one_row else rows[i]
            out[n, 4] = times[0] if one_time else times[i]
            n += np.uint64(1)
        if np.uint64(stop[0]) < last:
            missing = stop[2] != 0
            why = 2 if missing else 1
            stop[1] = stop[3] if missing else stop[1]
    stop[3], stop[4] = 0, n
    return why
