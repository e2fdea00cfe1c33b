"""The lives of orders, from their add to their end, and where they were placed."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_facts.track import Track

FILLED, CANCELLED, REPLACED, LIVE = range(4)
_BUY: Final = ord("B")


class Lives(NamedTuple):
    """Orders that a track adds: `life` ns from add to end (of LIVE ones: 0), `fate`, shares `added` and
    `filled`."""

    life: NDArray[np.int64]
    fate: NDArray[np.int8]
    added: NDArray[np.int64]
    filled: NDArray[np.int64]


def lives_of(track: Track) -> Lives:
    """Every order that was added in the track's hours; a replace ends one order and adds another."""
    rows = track.rows
    adds, fills, cuts = track.of("A"), track.of("ECc"), track.of("XD")
    replaces = track.of("U")
    ref = np.concatenate([rows["ref"][adds], rows["ref2"][replaces], rows["ref"][fills], rows["ref"][cuts],
                          rows["ref"][replaces]])  # fmt: skip
    at = np.concatenate([adds, replaces, fills, cuts, replaces])
    what = np.repeat([0, 0, 1, 2, 3], [len(adds), len(replaces), len(fills), len(cuts), len(replaces)])
    order = np.lexsort((at, ref))
    ref, at, what = ref[order], at[order], what[order]
    if not len(ref):
        nothing = np.zeros(0, np.int64)
        return Lives(nothing, nothing.astype(np.int8), nothing, nothing)
    first = np.flatnonzero(np.concatenate([[True], ref[1:] != ref[:-1]]))
    last = np.concatenate([first[1:], [len(ref)]]) - 1
    qty = rows["qty"][at]
    added = np.add.reduceat(np.where(what == 0, qty, 0), first)
    filled = np.add.reduceat(np.where(what == 1, qty, 0), first)
    cut = np.add.reduceat(np.where(what == 2, qty, 0), first)
    deleted = rows["kind"][at[last]] == ord("D")
    fate = np.full(len(first), LIVE, np.int8)
    fate[(filled + cut >= added) & (what[last] == 1)] = FILLED
    fate[((filled + cut >= added) & (what[last] == 2)) | deleted] = CANCELLED
    fate[what[last] == 3] = REPLACED
    life = np.where(fate == LIVE, 0, rows["ts"][at[last]] - rows["ts"][at[first]])
    own = what[first] == 0  # of others the track does not have the add
    return Lives(life[own], fate[own], added[own], np.minimum(filled[own], added[own]))


def distances(track: Track) -> NDArray[np.int64]:
    """i64[k]: how far behind its own side's touch each new order was placed, in ticks; negative: better.

    The touch is that before the order came, of those orders for which there was one.
    """
    rows = track.rows
    came = track.of("AU")
    came = came[came > 0]
    before, now = rows[came - 1], rows[came]
    buys = now["side"] == _BUY
    touch = np.where(buys, before["bid"], before["ask"])
    there = (touch > 0) & (before["bid"] > 0) & (before["ask"] > before["bid"])
    away = np.where(buys, touch - now["price"], now["price"] - touch)
    # floored, as prices off the tick (midpoints) are better than the next tick behind
    return (away[there] // track.tick).astype(np.int64)
