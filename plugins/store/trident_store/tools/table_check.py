"""Is a table what it says? Its bytes check already; here its parts are held against its events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Finding
from trident_core.errors import DamagedStoreError
from trident_store.lsm.layout import HEADER_BYTES, Section
from trident_store.tables import Table, finding_of
from trident_store.tools import check_kernels as kernels


class TableCheck:
    """The checks of one table whose every byte checks (`Table.findings`). `types`: events by type."""

    def __init__(self, table: Table) -> None:
        self.table = table
        raw = table.raw[HEADER_BYTES:][: table.sections[Section.BLOCKS][1]]
        self._raw64, self._raw_i64 = raw.view("<u8"), raw.view("<i8")
        self._raw32, self._raw8 = raw.view("<u4"), raw
        self._shape = table.block_events, table.entry.count
        self.types = np.zeros(256, np.int64)

    def findings(self) -> Iterator[Finding]:
        """What is wrong, by part of the table. Costs a pass over the events for each part."""
        for check in (self._runs, self._zones, self._order, self._refs, self._footer, self._padding):
            for section, problem in check():
                yield self._finding(section, problem)
        try:
            session = self.table.session
        except DamagedStoreError as error:
            yield finding_of(error)
            return
        unknown = np.setdiff1d(self.table.runs["locate"], [0, *session.directory.as_mapping()])
        if len(unknown) and len(session.directory):
            yield self._finding(Section.SESSION, f"the directory lacks locate {unknown[0]}", "note")

    def _finding(self, section: Section, problem: str, severity: str = "error") -> Finding:
        entry = self.table.entry
        offset = self.table.sections[section][0]
        return Finding(
            self.table.name, offset, entry.first_ordinal, entry.end_ordinal - 1, f"{section.name}: {problem}",
            severity,
        )  # fmt: skip

    def _runs(self) -> Iterator[tuple[Section, str]]:
        runs, count = self.table.runs, self.table.entry.count
        starts, locates = runs["start"].astype(np.int64), runs["locate"].astype(np.uint32)
        tiled = (
            len(starts) > 0 and starts[0] == 0 and bool(np.all(np.diff(starts) > 0)) and starts[-1] < count
        )
        if not tiled or not bool(np.all(locates[1:] > locates[:-1])):
            yield Section.RUNS, "the runs of locates do not tile the table"
            return
        at = kernels.check_runs(self._raw64, self._raw32, starts, locates, *self._shape)
        if at >= 0:
            yield Section.BLOCKS, f"the event at position {at} is not where (locate, seq) would sort it"

    def _zones(self) -> Iterator[tuple[Section, str]]:
        blocks = self.table.blocks
        names = ("min_seq", "max_seq", "min_ts", "max_ts", "min_locate", "max_locate")
        zones = np.stack([blocks[name].astype(np.uint64) for name in names], axis=1)
        prices = np.stack([blocks["min_price"], blocks["max_price"]], axis=1).astype(np.int64)
        bad = kernels.check_zones(
            self._raw64, self._raw_i64, self._raw32, self._raw8, *self._shape, zones, prices, self.types
        )
        if bad >= 0:
            yield Section.BLOCK_INFO, f"the zone map of block {bad} is not that of its events"

    def _order(self) -> Iterator[tuple[Section, str]]:
        table, windows = self.table, self.table.windows
        first, low, high = (np.ascontiguousarray(windows[n]) for n in ("first_seq", "min_ts", "max_ts"))
        seen = np.zeros(table.entry.count, np.uint8)
        at = kernels.check_order(
            self._raw64, np.ascontiguousarray(table.seq_index), *self._shape, table.window_events, first, low,
            high, seen,
        )  # fmt: skip
        if at >= 0:
            yield (
                Section.SEQ_INDEX,
                f"the order of appending is wrong at event {table.entry.first_ordinal + at}",
            )

    def _refs(self) -> Iterator[tuple[Section, str]]:
        table = self.table
        due = kernels.names_in(self._raw64, self._raw8, *self._shape)
        if due != len(table.refs):
            yield Section.REFS, f"{len(table.refs)} entries index {due} names of orders"
        bloom = np.ascontiguousarray(table.bloom).reshape(-1, 8)
        made = np.zeros_like(bloom)
        at = kernels.check_refs(
            self._raw64, self._raw8, *self._shape, table.refs, table.ref_positions, bloom, made
        )
        if at >= 0:
            yield Section.REFS, f"entry {at} (order {table.refs[at]}) does not lead to an event of that order"
        elif not np.array_equal(bloom, made):
            yield Section.BLOOM, "the filter is not that of the references"
        if not np.array_equal(table.pages["first_ref"], table.refs[:: table.page_refs]):
            yield Section.PAGES, "the pages do not begin where they say"

    def _footer(self) -> Iterator[tuple[Section, str]]:
        table, footer = self.table, self.table.footer
        refs = table.refs
        said = {name: int(footer[name]) for name in ("min_ts", "max_ts", "min_ref", "max_ref")}
        true = {
            "min_ts": int(table.windows["min_ts"].min()),
            "max_ts": int(table.windows["max_ts"].max()),
            "min_ref": int(refs[0]) if len(refs) else 1,
            "max_ref": int(refs[-1]) if len(refs) else 0,
        }
        for name, value in true.items():
            if said[name] != value:
                yield Section.SESSION, f"the footer says {name} {said[name]} where it is {value}"

    def _padding(self) -> Iterator[tuple[Section, str]]:
        """What fills a section up, and is reserved, is zero."""
        for section in Section:
            offset, size, _ = self.table.sections[section]
            used = self._used(section, size)
            if self.table.raw[offset + used : offset + size].any():
                yield section, "what fills the section up is not zero"
        if self.table.blocks["zero"].any() or self.table.windows["zero"].any():
            yield Section.BLOCK_INFO, "what is reserved is not zero"

    def _used(self, section: Section, size: int) -> int:
        parts: dict[Section, NDArray[Any]] = {
            Section.BLOCK_INFO: self.table.blocks, Section.RUNS: self.table.runs,
            Section.SEQ_INDEX: self.table.seq_index, Section.WINDOWS: self.table.windows,
            Section.REFS: self.table.refs, Section.REF_POSITIONS: self.table.ref_positions,
            Section.PAGES: self.table.pages,
        }  # fmt: skip
        return parts[section].nbytes if section in parts else size
