"""Neighbouring tables into one: their content, merged piece by piece. Memory: twelve bytes an event."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT
from trident_store.lsm import merge_kernels
from trident_store.lsm.layout import HEADER_BYTES, RUN, WINDOW, Section, Shape, pieces
from trident_store.lsm.table_writer import STEP_BLOCKS, Content
from trident_store.tables import Table

_REFS_AT_ONCE: Final = 1 << 16


class _Runs(NamedTuple):
    """The runs of one input: where they are, how long, and where they go."""

    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    targets: NDArray[np.int64]


def merged(
    tables: Sequence[Table], shape: Shape, first_block: int = 0, step_blocks: int = STEP_BLOCKS
) -> Content:
    """The content of a table that takes the place of neighbours, given in the order of their events; of its
    blocks, those from `first_block` on, so many at once.

    Every byte of the inputs must have been checked (`Table.findings`).
    """
    count = sum(table.entry.count for table in tables)
    runs, plans = _plan(tables)
    mapped = []
    seq_index = np.empty(count, np.uint32)
    firsts = np.cumsum([0] + [table.entry.count for table in tables])
    for table, plan, first in zip(tables, plans, firsts.tolist(), strict=False):
        mapped.append(np.empty(table.entry.count, np.uint32))
        merge_kernels.map_positions(*plan, mapped[-1])
        merge_kernels.take_positions(mapped[-1], table.seq_index, seq_index[first:][: table.entry.count])
    return Content(
        count=count,
        first_seq=tables[0].entry.first_seq,
        last_seq=tables[-1].entry.last_seq,
        runs=runs,
        seq_index=seq_index,
        windows=_windows(tables, firsts, count, shape),
        ref_count=sum(len(table.refs) for table in tables),
        blocks=_blocks(tables, plans, count, shape.block_events, first_block, step_blocks),
        refs=_refs(tables, mapped),
    )


def _plan(tables: Sequence[Table]) -> tuple[NDArray[Any], list[_Runs]]:
    """The new runs, and for each input where its runs go: a locate's runs stand in the tables' order."""
    starts = [table.runs["start"].astype(np.int64) for table in tables]
    lengths = [np.diff(start, append=table.entry.count) for start, table in zip(starts, tables, strict=True)]
    locates = np.concatenate([table.runs["locate"] for table in tables])
    owner = np.concatenate([np.full(len(start), i) for i, start in enumerate(starts)])
    order = np.argsort(locates, kind="stable")
    sizes = np.concatenate(lengths)[order]
    targets = np.empty(len(order), np.int64)
    targets[order] = np.cumsum(sizes) - sizes
    begins = np.flatnonzero(np.concatenate([[True], locates[order][1:] != locates[order][:-1]]))
    runs = np.zeros(len(begins), RUN)
    runs["locate"], runs["start"] = locates[order][begins], targets[order][begins]
    plans = [_Runs(starts[i], lengths[i], targets[owner == i]) for i in range(len(tables))]
    return runs, plans


def _views(data: NDArray[np.uint8]) -> tuple[Any, Any, Any, Any]:
    return data.view("<u8"), data.view("<u4"), data.view("<u2"), data


def _raw(table: Table) -> NDArray[np.uint8]:
    """The bytes of a table's blocks."""
    return table.raw[HEADER_BYTES:][: table.sections[Section.BLOCKS][1]]


def _windows(tables: Sequence[Table], firsts: NDArray[np.int64], count: int, shape: Shape) -> NDArray[Any]:
    windows = np.zeros(pieces(count, shape.window_events), WINDOW)
    low = np.full(len(windows), (1 << 64) - 1, np.uint64)
    high = np.zeros(len(windows), np.uint64)
    ordinals = np.arange(0, count, shape.window_events)
    for table, first in zip(tables, firsts.tolist(), strict=False):
        raw64 = _views(_raw(table))[0]
        merge_kernels.window_bounds(
            raw64, table.seq_index, table.block_events, first, shape.window_events, low, high
        )
        here = (ordinals >= first) & (ordinals < first + table.entry.count)
        windows["first_seq"][here] = table.rows(table.seq_index[ordinals[here] - first])["seq"]
    windows["min_ts"], windows["max_ts"] = low, high
    return windows


def _blocks(
    tables: Sequence[Table], plans: Sequence[_Runs], count: int, block_events: int, first_block: int,
    step_blocks: int,
) -> Iterator[NDArray[np.uint8]]:  # fmt: skip
    step = block_events * step_blocks
    room = np.empty(min(step, count) * EVENT.itemsize, np.uint8)
    for begin in range(first_block * block_events, count, step):
        end = min(begin + step, count)
        out = room[: (end - begin) * EVENT.itemsize]
        for table, plan in zip(tables, plans, strict=True):
            # A plan's targets ascend: the runs that reach into [begin, end) are neighbours.
            first = max(int(np.searchsorted(plan.targets, begin, "right")) - 1, 0)
            last = int(np.searchsorted(plan.targets, end))
            some = _Runs(*(each[first:last] for each in plan))
            merge_kernels.copy_runs(
                *_views(_raw(table)), table.block_events, table.entry.count, *some, begin, *_views(out),
                block_events, count,
            )  # fmt: skip
        yield out


def _addresses(arrays: Sequence[NDArray[Any]]) -> NDArray[np.uint64]:
    return np.array([each.ctypes.data for each in arrays], np.uint64)


def _refs(
    tables: Sequence[Table], mapped: Sequence[NDArray[np.uint32]]
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint32]]]:
    refs_at, positions_at = (
        _addresses([t.refs for t in tables]),
        _addresses([t.ref_positions for t in tables]),
    )
    mapped_at = _addresses(mapped)
    cursors, ends = np.zeros(len(tables), np.int64), np.array([len(t.refs) for t in tables], np.int64)
    while True:
        refs, positions = np.empty(_REFS_AT_ONCE, np.uint64), np.empty(_REFS_AT_ONCE, np.uint32)
        n = merge_kernels.merge_refs(refs_at, positions_at, mapped_at, cursors, ends, refs, positions)
        if not n:
            return
        yield refs[:n], positions[:n]
