"""Many named patterns in one scan, and any combination of them.

Each criterion is a bit of a u64 mask. A symbol's pattern runs on the session's directory, a type's on the
256 letters, so an event's mask is two look-ups and an AND; only MPIDs are matched on events, and only on
those that carry one. A selection such as "(a or b) and not c" says which masks are taken. What all events
must satisfy besides (a condition, patterns) narrows the scan where it can, and is asked of the selected
events where it cannot.

    search = find_set(store.snapshot(), engine, {"a": Criterion(symbol="^A"), "gs": Criterion(mpid="^GSCO$")},
                      select="a and not gs")
    search.count(), search.counts(), search.counts_by("symbol"), search.first(), search.bitmap()
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Predicate, Query, Snapshot
from trident_core.dtypes import EVENT, Events
from trident_core.errors import UsageError
from trident_core.event_types import ATTRIBUTED
from trident_core.grouping import count_by
from trident_core.search import SHORT_SYMBOL_BYTES, Range, Search, find
from trident_core.selection import Selection, parse_selection

#: Criteria of one set: the bits of a mask.
CRITERIA_MAX = 64


@dataclass(frozen=True, slots=True)
class Criterion:
    """Patterns that must all match. None is no pattern; flags and full go for all three."""

    symbol: str | None = None
    mpid: str | None = None
    types: str | None = None
    flags: str = ""
    full: bool = False


_ALL: Final = Criterion()
_ANY: Final[Range] = (None, None)


@dataclass(slots=True)
class SetSearch:
    """What `find_set` found out. Scans as often as it is asked.

    `known`: u32, the locates with a symbol, ascending. `by_locate`: u64[known + 1], the criteria that each
    symbol leaves possible, and at the end those possible without one; `by_type`: u64[256], the same for
    letters; `mpids`: the programs of the criteria that ask for an MPID, by bit. `base`: the search for the
    events that all this is about; its range and its conditions hold for every selected event.
    """

    snapshot: Snapshot
    names: tuple[str, ...]
    selection: Selection
    known: NDArray[np.uint32]
    by_locate: NDArray[np.uint64]
    by_type: NDArray[np.uint64]
    base: Search
    mpids: dict[int, Any] = field(default_factory=dict)
    limit: int = 0
    batch: int = 65_536

    @property
    def notes(self) -> list[str]:
        """In words, why nothing can be found, for the user."""
        return self.base.notes

    def names_of(self, mask: int) -> list[str]:
        """The criteria that a mask says are met."""
        return [name for bit, name in enumerate(self.names) if mask >> bit & 1]

    def moved(self, snapshot: Snapshot, seq: Range) -> SetSearch:
        """As `Search.moved`."""
        return replace(self, snapshot=snapshot, base=self.base.moved(snapshot, seq))

    def masks(self, events: Events) -> NDArray[np.uint64]:
        """u64[n]: bit i says whether criterion i is met."""
        place = np.searchsorted(self.known, events["locate"])
        inside = np.minimum(place, max(len(self.known) - 1, 0))
        if len(self.known):
            place = np.where(self.known[inside] == events["locate"], inside, len(self.known))
        masks: NDArray[np.uint64] = self.by_locate[place] & self.by_type[events["type"]]
        if self.mpids:
            carries = np.flatnonzero(np.isin(events["type"], list(ATTRIBUTED)))
            firms = np.ascontiguousarray(events["aux"][carries, :4])
            for bit, program in self.mpids.items():
                met = np.zeros(len(events), np.bool_)
                met[carries] = program.match(firms)
                masks[~met] &= ~np.uint64(1 << bit)
        return masks

    def scan(self) -> Iterator[tuple[Events, NDArray[np.uint64]]]:
        """The selected events in append order, with their masks; batches of at least one."""
        locates, types = self._narrowed()
        if types == b"" or (locates is not None and not len(locates)):
            return
        base = self.base
        for events in self.snapshot.scan(
            seq=base.seq, ts=base.ts, locates=locates, types=types, batch=self.batch
        ):
            masks = self.masks(events)
            taken = np.flatnonzero(self.selection.of(masks))
            if not len(taken):
                continue
            selected, masks = events[taken], masks[taken]
            places = base.places(selected)
            if places is not None:
                selected, masks = selected[places], masks[places]
            if len(selected):
                yield selected, masks

    def _narrowed(self) -> tuple[NDArray[np.uint32] | None, bytes | None]:
        """Locates and types that the scan may be limited to; None is no limit."""
        locates, types = self.base.locates, self.base.types
        if self.selection.takes_nothing_met():
            return locates, types
        # An event that meets no criterion is not selected, so the scan may leave it out.
        if not self.by_locate[-1]:
            own = self.known[self.by_locate[:-1] != 0]
            locates = own if locates is None else np.intersect1d(locates, own)
        letters = np.flatnonzero(self.by_type).astype(np.uint8).tobytes()
        if types is not None:
            return locates, bytes(letter for letter in types if letter in letters)
        return locates, None if len(letters) == 256 else letters

    def labelled(self) -> Iterator[tuple[Events, NDArray[np.uint64]]]:
        """The selected events with their masks, up to `limit` in all (0 means all)."""
        left = self.limit
        for events, masks in self.scan():
            if self.limit and len(events) >= left:
                yield events[:left], masks[:left]
                return
            left -= len(events)
            yield events, masks

    def __iter__(self) -> Iterator[Events]:
        """The selected events, up to `limit` in all (0 means all)."""
        return (events for events, _ in self.labelled())

    def count(self) -> int:
        """How many events are selected."""
        return sum(len(events) for events, _ in self.scan())

    def counts(self) -> dict[str, int]:
        """Of the selected events, how many meet each criterion."""
        totals = np.zeros(len(self.names), np.int64)
        for _, masks in self.scan():
            for bit in range(len(self.names)):
                totals[bit] += int(np.count_nonzero(masks >> np.uint64(bit) & np.uint64(1)))
        return dict(zip(self.names, totals.tolist(), strict=True))

    def counts_by(self, by: str) -> dict[str, int]:
        """How many selected events each group has: "symbol", "type", "order", "mpid", a time such as "1m"; or
        meet each "pattern". Raises UsageError for another `by`.
        """
        if by == "pattern":
            return self.counts()
        return count_by((events for events, _ in self.scan()), by, self.snapshot.session)

    def first(self) -> Events:
        """EVENT[0 or 1]: the first selected event."""
        for events, _ in self.scan():
            return events[:1].copy()
        return np.zeros(0, EVENT)

    def last(self) -> Events:
        """EVENT[0 or 1]: the last selected event. Reads all before it."""
        found = np.zeros(0, EVENT)
        for events, _ in self.scan():
            found = events[-1:].copy()
        return found

    def bitmap(self) -> NDArray[np.uint8]:
        """u8[ceil(count / 8)]: bit i (lowest first) for the snapshot's event i in append order: is it
        selected? A bit for each event of the store, whatever `seq` and `ts` leave out."""
        chosen = np.zeros(self.snapshot.count, np.bool_)
        seqs = iter(self.scan())
        wanted = next(seqs, None)
        at = 0
        for events in self.snapshot.scan(batch=self.batch):
            here = events["seq"]
            while wanted is not None and wanted[0]["seq"][0] <= here[-1]:
                inside = wanted[0]["seq"] <= here[-1]
                chosen[at + np.searchsorted(here, wanted[0]["seq"][inside])] = True
                rest = wanted[0][~inside]
                wanted = (rest, wanted[1]) if len(rest) else next(seqs, None)
            at += len(events)
        return np.packbits(chosen, bitorder="little")

    def explain(self) -> dict[str, Any]:
        """What is looked up, and what the scan leaves out."""
        pushed = not self.selection.takes_nothing_met()
        return {
            "criteria": list(self.names),
            "select": self.selection.text,
            "locates_possible": int(np.count_nonzero(self.by_locate[:-1])),
            "locates_known": len(self.snapshot.session.directory),
            "types_possible": int(np.count_nonzero(self.by_type)),
            "matched_on_events": [self.names[bit] for bit in self.mpids],
            "scan": "blocks without these locates and types are skipped" if pushed else "every event",
        } | ({"all_events": self.base.explain()} if self._based else {})

    @property
    def _based(self) -> bool:
        """Is something asked of every event?"""
        base = self.base
        return bool(base.programs) or base.where is not None or (base.seq, base.ts) != (_ANY, _ANY)


def find_set(
    snapshot: Snapshot,
    engine: Query,
    criteria: Mapping[str, Criterion],
    *,
    select: str = "",
    among: Criterion = _ALL,
    where: Predicate | None = None,
    seq: Range = _ANY,
    ts: Range = _ANY,
    limit: int = 0,
    batch: int = 65_536,
) -> SetSearch:
    """Compile 1 to 64 named criteria. `select`: names with and, or, not and parentheses; empty: any of them.

    Only events that meet `among` and `where`, with `seq` and `ts` in these closed ranges, are looked at.
    Raises PatternError for a pattern outside the dialect, UsageError for a bad selection, name, number of
    criteria, range, limit or batch.
    """
    if not 1 <= len(criteria) <= CRITERIA_MAX:
        raise UsageError(f"{len(criteria)} criteria", hint=f"1 to {CRITERIA_MAX}")
    base = find(
        snapshot, engine, symbol=among.symbol, mpid=among.mpid, types=among.types, flags=among.flags,
        full=among.full, where=where, seq=seq, ts=ts, limit=limit, batch=batch,
    )  # fmt: skip
    names = tuple(criteria)
    selection = parse_selection(select or " or ".join(names), names)
    tables = _tables(snapshot, engine, criteria)
    search = SetSearch(snapshot, names, selection, *tables, base=base, limit=limit, batch=batch)
    for bit, criterion in enumerate(criteria.values()):
        if criterion.mpid is not None:
            search.mpids[bit] = engine.compile(criterion.mpid, flags=criterion.flags, full=criterion.full)
    return search


def _tables(
    snapshot: Snapshot, engine: Query, criteria: Mapping[str, Criterion]
) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint64]]:
    """(locates with a symbol, ascending; criteria possible for each, and at the end for all other locates; by
    type)."""
    instruments = list(snapshot.session.directory)
    symbols = [item.symbol.encode("utf-8", "surrogateescape") for item in instruments]
    known = np.array([item.locate for item in instruments], np.uint32)
    width = max([1, *map(len, symbols)])
    # A column is as wide as its longest value, so a few long ones go by themselves.
    column = np.array(symbols, f"S{width}") if width <= SHORT_SYMBOL_BYTES else None
    letters = np.arange(256, dtype=np.uint8)[:, None]
    by_locate, by_type = np.zeros(len(known) + 1, np.uint64), np.zeros(256, np.uint64)
    for bit, criterion in enumerate(criteria.values()):
        options: dict[str, Any] = {"flags": criterion.flags, "full": criterion.full}
        mask = np.uint64(1 << bit)
        if criterion.symbol is None:
            by_locate |= mask
        elif len(symbols):
            program = engine.compile(criterion.symbol, **options)
            if column is not None:
                matches = program.match(column)
            else:
                matches = np.array([program.match(np.array([s], "S"))[0] for s in symbols], np.bool_)
            by_locate[:-1][matches] |= mask
        else:
            engine.compile(criterion.symbol, **options)
        if criterion.types is None:
            by_type |= mask
        else:
            by_type[engine.compile(criterion.types, raw=True, **options).match(letters)] |= mask
    return known, by_locate, by_type
