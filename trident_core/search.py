"""Searches over a store: patterns on symbol, MPID and type, pushed down to the scan, for any query engine.

A pattern never runs on events where it can run on a dictionary: the symbol's runs once on the session's
directory and becomes a set of locates, the type's runs once on the 256 one-byte texts and becomes a set of
types. Only the MPID's runs on events, and only on those that carry one. All criteria are ANDed.

    search = find(store.snapshot(), ReferenceQuery(), symbol="^AA", types="[AF]")
    search.count()
    for events in search: ...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Explained, Predicate, Program, Query, Snapshot
from trident_core.dtypes import Events
from trident_core.errors import UsageError
from trident_core.event_types import ATTRIBUTED
from trident_core.grouping import count_by

#: Symbols of up to so many bytes share one column.
SHORT_SYMBOL_BYTES: Final = 64

Range = tuple[int | None, int | None]


class Group(NamedTuple):
    """How many matching events a symbol has of a type. `symbol` is empty for a locate without one."""

    locate: int
    symbol: str
    type: str
    count: int  # type: ignore[assignment]  # shadows tuple.count


@dataclass(slots=True)
class Search:
    """What `find` found out: which events match, ready to be scanned, any number of times.

    `locates`: u32, ascending, of the symbols that match; None where there was no symbol criterion. `types`:
    the type bytes that can match; None means all. `notes`: in words, why the search cannot find anything, for
    the user. Iterating yields EVENT batches of 1 to `batch` events in append order, up to `limit` events in
    all (0 means all). `count`, `summary` and `counts_by` take in every match, whatever the limit.
    """

    snapshot: Snapshot
    locates: NDArray[np.uint32] | None = None
    types: bytes | None = None
    mpid: Program | None = None
    where: Predicate | None = None
    seq: Range = (None, None)
    ts: Range = (None, None)
    limit: int = 0
    batch: int = 65_536
    notes: list[str] = field(default_factory=list)
    programs: dict[str, Program] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Events]:
        left = self.limit
        for events in self._matching():
            if self.limit and len(events) >= left:
                yield events[:left]
                return
            left -= len(events)
            yield events

    def _matching(self) -> Iterator[Events]:
        if self.types == b"" or (self.locates is not None and len(self.locates) == 0):
            return
        scan = self.snapshot.scan(
            seq=self.seq, ts=self.ts, locates=self.locates, types=self.types, batch=self.batch
        )
        for events in scan:
            places = self.places(events)
            matching = events if places is None else events[places]
            if len(matching):
                yield matching

    def places(self, events: Events) -> NDArray[np.intp] | None:
        """Where those that match are among events that the scan gave; None: all of them match."""
        places = None if self.mpid is None else np.flatnonzero(self.mpid.match(_mpids(events)))
        if self.where is not None and (places is None or len(places)):
            met = self.where.match(events if places is None else events[places])
            places = np.flatnonzero(met) if places is None else places[met]
        return places

    def labelled(self) -> Iterator[tuple[Events, None]]:
        """As iterating; a set of patterns has masks in the second place (`SetSearch.labelled`)."""
        return ((events, None) for events in self)

    def moved(self, snapshot: Snapshot, seq: Range) -> Search:
        """The same search over these events of another snapshot with the same symbols; nothing is compiled
        again."""
        narrowed = seq if self.where is None else _meet(seq, self.where.bounds.seq)
        return replace(self, snapshot=snapshot, seq=narrowed)

    def count(self) -> int:
        """How many events match, in one pass."""
        return sum(len(events) for events in self._matching())

    def summary(self) -> list[Group]:
        """How many events match for each (locate, type), ascending; one pass, memory by groups."""
        counts: Counter[int] = Counter()
        for events in self._matching():
            keys = events["locate"].astype(np.uint64) << np.uint64(8) | events["type"]
            for key, count in zip(*np.unique(keys, return_counts=True), strict=True):
                counts[int(key)] += int(count)
        symbol = self.snapshot.session.directory.symbol
        return [
            Group(key >> 8, symbol(key >> 8), chr(key & 0xFF), count) for key, count in sorted(counts.items())
        ]

    def counts_by(self, column: str) -> dict[str, int]:
        """How many events match by "symbol", "type", "order", "mpid", the most frequent first, or by a bucket
        of time such as "1s" or "5m", in order (`trident_core.grouping`).

        Raises UsageError for another column. Events without one (no symbol, no MPID) count as "".
        """
        return count_by(self._matching(), column, self.snapshot.session)

    def explain(self) -> dict[str, Any]:
        """What was compiled for each criterion, and what the scan is told to leave out."""
        told: dict[str, Any] = {
            name: program.explain() if isinstance(program, Explained) else {"pattern": program.pattern}
            for name, program in self.programs.items()
        }
        known = len(self.snapshot.session.directory)
        if self.locates is not None:
            told["symbol_pushdown"] = {"run_on": f"{known:,} symbols", "locates": len(self.locates)}
        if self.types is not None:
            told["type_pushdown"] = {"run_on": "256 letters", "types": self.types.decode("latin-1")}
        if self.mpid is not None:
            told["mpid_matched_on"] = "events of types F and L that the scan gives"
        narrowed = self.locates is not None or self.types is not None
        narrowed = narrowed or self.seq != (None, None) or self.ts != (None, None)
        told["scan"] = "blocks that the criteria exclude are skipped" if narrowed else "every event"
        return told


def find(
    snapshot: Snapshot,
    engine: Query,
    *,
    symbol: str | None = None,
    mpid: str | None = None,
    types: str | None = None,
    where: Predicate | None = None,
    flags: str = "",
    full: bool = False,
    seq: Range = (None, None),
    ts: Range = (None, None),
    limit: int = 0,
    batch: int = 65_536,
) -> Search:
    """Compile the criteria with `engine` and push them down. None is no criterion.

    `symbol` runs on the symbols of the session's directory, so events without a symbol (locate 0) never match
    it. `types` runs on the type letter, `mpid` on the attribution of F and the participant of L events; no
    other type has one. `flags` and `full` go for all three patterns. `seq` and `ts` are closed ranges, None
    is open. `where`: a predicate more, which narrows the scan by its bounds. Raises PatternError for a
    pattern outside the dialect, UsageError for a bad limit, batch or range.
    """
    if limit < 0:
        raise UsageError(f"a limit of {limit} events", hint="0 means all")
    if batch < 1:
        raise UsageError(f"batches of {batch} events", hint="at least 1")
    _check_range("seq", seq)
    _check_range("ts", ts)
    search = Search(snapshot, seq=seq, ts=ts, limit=limit, batch=batch)
    if symbol is not None:
        program = search.programs["symbol"] = engine.compile(symbol, flags=flags, full=full)
        search.locates = _locates(snapshot, program)
        if len(search.locates) == 0:
            known = len(snapshot.session.directory)
            search.notes.append(f"none of the session's {known:,} symbols matches {symbol!r}")
    if types is not None:
        letters = search.programs["type"] = engine.compile(types, flags=flags, full=full, raw=True)
        search.types = _types(letters)
        if not search.types:
            search.notes.append(
                f"no type letter matches {types!r}; a type is one letter, so write [AF] for two"
            )
    if mpid is not None:
        search.mpid = search.programs["mpid"] = engine.compile(mpid, flags=flags, full=full)
        wanted = ATTRIBUTED if search.types is None else search.types
        search.types = bytes(letter for letter in ATTRIBUTED if letter in wanted)
        if wanted and not search.types:
            search.notes.append("only F and L events carry an MPID, and the type criterion leaves neither")
    if where is not None:
        _push_down(search, where)
    return search


def _push_down(search: Search, where: Predicate) -> None:
    """What the predicate demands narrows the scan; the predicate itself is asked of what is left."""
    search.where, bounds = where, where.bounds
    if bounds.impossible:
        search.notes.append(f"no event can satisfy {where.text!r}")
        search.types = b""
        return
    search.seq, search.ts = _meet(search.seq, bounds.seq), _meet(search.ts, bounds.ts)
    types, locates = bounds.scan_types(), bounds.scan_locates()
    if types is not None:
        search.types = (
            types if search.types is None else bytes(each for each in types if each in search.types)
        )
    if locates is not None:
        known = locates if search.locates is None else np.intersect1d(search.locates, locates)
        search.locates = known.astype(np.uint32)


def _meet(bounds: Range, more: tuple[int, int]) -> Range:
    low, high = bounds
    low = more[0] if low is None else max(low, more[0])
    return low or None, more[1] if high is None else min(high, more[1])


def _check_range(name: str, bounds: Range) -> None:
    low, high = bounds
    if low is not None and high is not None and low > high:
        raise UsageError(f"the {name} range {low} to {high} is empty", hint="give the smaller bound first")


def _mpids(events: Events) -> NDArray[np.uint8]:
    return np.ascontiguousarray(events["aux"][:, :4])


def _locates(snapshot: Snapshot, program: Program) -> NDArray[np.uint32]:
    """The locates whose symbols match. Long ones go one by one: a column is as wide as its longest value."""
    short: dict[int, bytes] = {}
    matching: list[int] = []
    for item in snapshot.session.directory:
        symbol = item.symbol.encode("utf-8", "surrogateescape")
        if len(symbol) <= SHORT_SYMBOL_BYTES:
            short[item.locate] = symbol
        elif program.match(np.array([symbol], dtype="S"))[0]:
            matching.append(item.locate)
    if short:
        matches = program.match(np.array(list(short.values()), dtype=f"S{SHORT_SYMBOL_BYTES}"))
        matching.extend(locate for locate, match in zip(short, matches.tolist(), strict=True) if match)
    return np.array(sorted(matching), dtype=np.uint32)


def _types(program: Program) -> bytes:
    letters = np.arange(256, dtype=np.uint8)
    return letters[program.match(letters[:, None])].tobytes()
