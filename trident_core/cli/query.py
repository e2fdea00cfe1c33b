"""`trident query STORE`: events by patterns and conditions, and sequences of events."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from trident_core.cli import common
from trident_core.cli import query_options as options
from trident_core.cli.event_rows import found_rows
from trident_core.cli.follow import follow_search, show_json, show_lines, tell
from trident_core.cli.output import console, emit, number, progress, table
from trident_core.cli.sequences import Wanted
from trident_core.cli.sequences import follow as follow_sequences
from trident_core.cli.sequences import run as run_sequences
from trident_core.contracts import Kind
from trident_core.dtypes import EVENT
from trident_core.errors import UsageError
from trident_core.follow import Step
from trident_core.follow import follow as follow_store
from trident_core.plugins import registry
from trident_core.stores import reading, select_store

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from trident_core.cli.output import Advance
    from trident_core.contracts import Query, Sequences, Snapshot
    from trident_core.dtypes import Events
    from trident_core.search import Search
    from trident_core.search_set import SetSearch
    from trident_core.session import Directory

DEFAULT_LIMIT = 20
#: Groups that --count prints in a table.
COUNT_ROWS = 40
#: A search tells its progress so many times.
SCAN_STEPS = 50
NUMBERS = ("seq", "price", "qty", "ref", "ref2")


def query(
    store: common.StorePath,
    symbol: options.Symbol = None,
    mpid: options.Mpid = None,
    type_: options.Type = None,
    pattern: options.Pattern = None,
    select: options.Select = None,
    flags: options.Flags = "",
    since: options.Since = None,
    until: options.Until = None,
    where: options.Where = None,
    match: options.Match = None,
    define: options.Define = None,
    per: options.Per = "order",
    within: options.Within = None,
    skip: options.Skip = "past",
    measure: options.Measure = None,
    all_rows: options.AllRows = False,
    sql: options.Sql = None,
    backtracking: options.Backtracking = False,
    steps: options.Steps = 0,
    state: options.State = None,
    follow: options.Follow = False,
    seconds: options.Seconds = None,
    count: options.Count = False,
    by: options.By = None,
    limit: options.Limit = None,
    explain: options.Explain = False,
    store_engine: common.StoreName = None,
    engine: common.QueryName = None,
    sequence: common.SequenceName = None,
    json: common.Json = False,
) -> None:
    """Find events by patterns (docs/dialect.md) and conditions, or sequences of events (docs/sequences.md).

    All options that choose events hold together: with --pattern, of the events that the others leave, those
    that --select takes, each with the names of its patterns; with --match, sequences of what is left.

    With --json and without --count: one JSON object a line, and all of them unless --limit says otherwise.
    """
    if by and not count:
        raise UsageError("--by groups counts", hint="add --count")
    if select and not pattern:
        raise UsageError("--select chooses among named patterns", hint="add --pattern NAME=FIELD:RE")
    if not match and (define or within or measure or all_rows or state):
        raise UsageError("--define, --within, --measure and --state belong to --match")
    if sql is not None and follow:
        raise UsageError("--sql asks of what is there", hint="--follow goes with patterns and with --match")
    if limit is None:
        limit = 0 if json or follow else DEFAULT_LIMIT
    asked = Asked(
        store, store_engine, engine, sequence, _times(since, until), where, limit, json, explain,
        {"symbol": symbol, "mpid": mpid, "types": type_, "flags": flags}, pattern or [], select or "",
    )  # fmt: skip
    if sql is not None:
        _sql(asked, sql, backtracking, steps)
    elif match is not None:
        wanted = Wanted(
            match, define or [], per, within, skip, measure or [], all_rows, count, by, limit, json, state,
            explain,
        )  # fmt: skip
        _sequences(asked, wanted, backtracking, follow, seconds)
    elif follow:
        if by not in (None, "type", "symbol") and not (by == "pattern" and pattern):
            raise UsageError("--follow counts by type, by symbol or, with --pattern, by pattern")
        _follow(asked, by or "type", count, seconds)
    else:
        _events(asked, by or "type" if count else "")


@dataclass(slots=True)
class Asked:
    """What the options say of the events that are looked at."""

    store: Path
    store_engine: str | None
    engine: str | None
    sequence: str | None
    ts: tuple[int | None, int | None]
    where: str | None
    limit: int
    json: bool
    explain: bool
    patterns: dict[str, Any]
    named: list[str]
    select: str
    kept: tuple[int, Directory, Search | SetSearch] | None = None

    @contextmanager
    def opened(self) -> Iterator[Snapshot]:
        made_store = select_store(self.store, self.store_engine).load()(self.store, "read")
        try:
            yield made_store.snapshot()
        finally:
            made_store.close()

    def sequences(self, name: str | None = None) -> Sequences:
        made: Sequences = registry().select(Kind.SEQUENCE, name or self.sequence).load()()
        return made

    def texts(self) -> Query:
        made: Query = registry().select(Kind.QUERY, self.engine).load()()
        return made

    def search(
        self, snapshot: Snapshot, *, after: int = 0, upto: int | None = None, limit: int = 0,
        told: bool = True,
    ) -> Search | SetSearch:  # fmt: skip
        """The events that the options leave; only those whose seq is greater than `after`, up to `upto`."""
        seq = (after + 1 if after else None, upto)
        directory = snapshot.session.directory
        if not told and self.kept is not None and self.kept[:2] == (directory.version, directory):
            return self.kept[2].moved(snapshot, seq)
        texts = self.texts()
        where = None
        if self.where is not None:
            where = self.sequences().predicate(self.where, snapshot.session, texts=texts)
        search = self._search(snapshot, texts, where=where, ts=self.ts, limit=limit, seq=seq)
        for note in search.notes if told else ():
            print(f"note: {note}", file=sys.stderr)
        if self.explain and told:
            tell_plan(search.explain() | ({"where": where.explain()} if where is not None else {}))
        self.kept = None if told else (directory.version, deepcopy(directory), search)
        return search

    def _search(self, snapshot: Snapshot, texts: Query, **options: Any) -> Search | SetSearch:
        if not self.named:
            from trident_core.search import find

            return find(snapshot, texts, **options, **self.patterns)
        from trident_core.cli.query_sets import criteria_of
        from trident_core.search_set import Criterion, find_set

        criteria = criteria_of(self.named, self.patterns["flags"])
        among = Criterion(**self.patterns)
        return find_set(snapshot, texts, criteria, select=self.select, among=among, **options)


def _events(asked: Asked, by: str) -> None:
    """Single events: a table, lines of JSON, or (with `by`) counts."""
    with asked.opened() as snapshot:
        with progress("searching", quiet=asked.json, start="") as advance:
            search = asked.search(Watched(snapshot, advance), limit=asked.limit)
            if by:
                groups = search.counts_by(by)
            elif asked.json:
                for part in found_rows(search):
                    show_json(part)
            else:
                rows = [row for part in found_rows(search) for row in part]
        if by:
            _print_counts(groups, by, as_json=asked.json)
        elif not asked.json:
            _print_events(rows, asked.limit)


def tell_plan(plan: dict[str, Any]) -> None:
    """What --explain says, as JSON on standard error."""
    print(jsonlib.dumps(plan, indent=2, ensure_ascii=False), file=sys.stderr)


def _follow(asked: Asked, by: str, count: bool, seconds: float | None) -> None:
    """Single events as they become durable; when it is over, the counts."""
    lines = show_json if asked.json else show_lines

    def search(step: Step) -> Search | SetSearch:
        return asked.search(step.snapshot, after=step.seq[0] - 1, upto=step.seq[1], told=False)

    with reading(asked.store, asked.store_engine) as (made_store, _):
        steps = follow_store(made_store, asked.store, seconds=seconds)
        found = follow_search(steps, search, by=by, limit=asked.limit, show=None if count else lines)
    if count and asked.json:
        print(jsonlib.dumps(found.to_json()))
    elif count:
        _print_counts(dict(found.groups.most_common()), by, as_json=False)
    else:
        tell(found)


def _sequences(asked: Asked, wanted: Wanted, backtracking: bool, follow: bool, seconds: float | None) -> None:
    engine = asked.sequences("reference" if backtracking else None)
    with asked.opened() as snapshot:
        session = snapshot.session
        if not follow:
            told = [True]

            def scan(after: int) -> Iterator[Events]:
                first, told[0] = told[0], False
                return iter(asked.search(snapshot, after=after, told=first))

            run_sequences(wanted, engine, session, asked.texts(), scan)
            return
    search = wanted.search(engine, session, asked.texts())
    if wanted.state is not None and wanted.state.exists():
        search.load(wanted.state)

    with reading(asked.store, asked.store_engine) as (made_store, _):
        steps = follow_store(made_store, asked.store, after=search.last_seq, seconds=seconds)

        def new(after: int) -> Iterator[Events]:
            for step in islice(steps, 1):
                yield from asked.search(step.snapshot, after=after, upto=step.seq[1], told=False)

        follow_sequences(wanted, search, new, until=seconds)


def _sql(asked: Asked, text: str, backtracking: bool, steps: int) -> None:
    with asked.opened() as snapshot:
        parts = list(asked.search(snapshot))
        events = np.concatenate(parts) if parts else np.empty(0, EVENT)
        names, rows = asked.sequences().sql(
            text, events, snapshot.session, allow_backtracking=backtracking, steps=steps
        )
    rows = rows[: asked.limit] if asked.limit else rows
    if asked.json:
        for row in rows:
            print(jsonlib.dumps(row if names is None else dict(zip(names, row, strict=True)), default=str))
        return
    width = max((len(row) for row in rows), default=0)
    shown = table("", *(names or [f"column {place}" for place in range(1, width + 1)]), gap=0)
    for row in rows:
        shown.add_row(*("" if cell is None else str(cell) for cell in row))
    console().print(shown)


def _times(since: str | None, until: str | None) -> tuple[int | None, int | None]:
    low, high = common.parse_at(since), common.parse_at(until)
    if low is not None and high is not None and low > high:
        raise UsageError(f"--from {since} is later than --to {until}")
    return low, high


class Watched:
    """A snapshot whose scans go by steps of the sequence numbers and tell how far they are.

    Sequence numbers grow, so the steps give the same events in the same order as one scan.
    """

    def __init__(self, snapshot: Snapshot, advance: Advance) -> None:
        self.session, self.count, self.last_seq = snapshot.session, snapshot.count, snapshot.last_seq
        self._snapshot, self._advance = snapshot, advance

    def scan(self, *, seq: tuple[int | None, int | None] = (None, None), **filters: Any) -> Iterator[Events]:
        low = seq[0] or 0
        high = self.last_seq if seq[1] is None else min(seq[1], self.last_seq)
        step = max(high - low, 0) // SCAN_STEPS + 1  # a range past the end has no step at all
        for start in range(low, high + 1, step):
            end = min(start + step - 1, high)
            yield from self._snapshot.scan(seq=(start, end), **filters)
            self._advance(end - low, high - low, end - low)

    def get(self, ref: int) -> Events:
        return self._snapshot.get(ref)

    def close(self) -> None:
        self._snapshot.close()


def _print_counts(groups: dict[str, int], by: str, *, as_json: bool) -> None:
    total = sum(groups.values())

    def render(out: Console) -> None:
        rows = table(f"{number(total)} events", by, ">count")
        for name, n in list(groups.items())[:COUNT_ROWS]:
            rows.add_row(name or "(none)", number(n))
        out.print(rows)
        if len(groups) > COUNT_ROWS:
            out.print(f"the first {COUNT_ROWS} of {number(len(groups))}; --json prints all")

    emit({"count": total, f"by_{by}": groups}, as_json=as_json, render=render)


def _cell(value: Any) -> str:
    return " ".join(value) if isinstance(value, list) else "" if value in (0, None) else str(value)


def _print_events(rows: list[dict[str, Any]], limit: int) -> None:
    out = console()
    if not rows:
        out.print("no event matches")
        return
    # A column that is empty in every row only costs width.
    names = [name for name in rows[0] if any(row[name] not in ("", 0, None, []) for row in rows)]
    shown = table("", *(f">{name}" if name in NUMBERS else name for name in names), gap=0)
    for row in rows:
        shown.add_row(*(_cell(row[name]) for name in names))
    out.print(shown)
    if len(rows) >= limit:
        out.print(f"stopped at --limit {limit}; --count counts them all")
