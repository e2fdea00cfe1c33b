"""`trident query STORE`: events by patterns and conditions, and sequences of events."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from trident_core.cli import common
from trident_core.cli import query_options as options
from trident_core.cli.follow import follow_search, over, show_json, show_lines, tell
from trident_core.cli.output import console, emit, number, progress, table
from trident_core.cli.sequences import Wanted
from trident_core.cli.sequences import follow as follow_sequences
from trident_core.cli.sequences import run as run_sequences
from trident_core.contracts import Kind
from trident_core.dtypes import EVENT, EventFlag
from trident_core.errors import UsageError
from trident_core.follow import Step
from trident_core.follow import follow as follow_store
from trident_core.plugins import registry
from trident_core.session import format_price, format_time
from trident_core.stores import reading, select_store

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from trident_core.cli.output import Advance
    from trident_core.contracts import Query, Sequences, Snapshot
    from trident_core.dtypes import Events
    from trident_core.search import Search
    from trident_core.search_set import SetSearch
    from trident_core.session import Session

DEFAULT_LIMIT = 20
#: Groups that --count prints in a table.
COUNT_ROWS = 40
#: Types whose events have a price (docs/contracts/parser.md); for the others it is null.
PRICED = frozenset(b"AFCUPQIKJVO")
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

    With --json and without --count: one JSON object a line, and all of them unless --limit says otherwise.
    """
    if by and not count:
        raise UsageError("--by groups counts", hint="add --count")
    if not match and (define or within or measure or all_rows or state):
        raise UsageError("--define, --within, --measure and --state belong to --match")
    if sql is not None and follow:
        raise UsageError("--sql asks of what is there", hint="--follow goes with patterns and with --match")
    if limit is None:
        limit = 0 if json or follow else DEFAULT_LIMIT
    asked = Asked(
        store, store_engine, engine, sequence, _times(since, until), where, limit, json, explain,
        {"symbol": symbol, "mpid": mpid, "types": type_, "flags": flags},
    )  # fmt: skip
    if pattern or select:
        if sql is not None or match is not None or follow or where or symbol or mpid or type_:
            raise UsageError("--pattern and --select go with --from, --to, --count, --by and --limit only")
        _set(asked, pattern or [], select or "", flags, by or ("type" if count else ""))
    elif sql is not None:
        _sql(asked, sql, backtracking, steps)
    elif match is not None:
        wanted = Wanted(
            match,
            define or [],
            per,
            within,
            skip,
            measure or [],
            all_rows,
            count,
            by,
            limit,
            json,
            state,
            explain,
        )
        _sequences(asked, wanted, backtracking, follow, seconds)
    elif follow:
        if by not in (None, "type", "symbol"):
            raise UsageError("--follow counts by type or by symbol")
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
    ) -> Search:  # fmt: skip
        """The events that the options leave; only those whose seq is greater than `after`, up to `upto`."""
        from trident_core.search import find

        texts = self.texts()
        where = None
        if self.where is not None:
            where = self.sequences().predicate(self.where, snapshot.session, texts=texts)
        search = find(
            snapshot, texts, where=where, ts=self.ts, limit=limit, seq=(after + 1 if after else None, upto),
            **self.patterns,
        )  # fmt: skip
        for note in search.notes if told else ():
            print(f"note: {note}", file=sys.stderr)
        if self.explain and told:
            tell_plan(search.explain() | ({"where": where.explain()} if where is not None else {}))
        return search


def _events(asked: Asked, by: str) -> None:
    """Single events: a table, lines of JSON, or (with `by`) counts."""
    _answer(asked, by, lambda snapshot: asked.search(snapshot, limit=asked.limit))


def _set(asked: Asked, patterns: list[str], select: str, flags: str, by: str) -> None:
    """The events that a selection of named patterns takes, shown as those of `_events`."""
    from trident_core.cli.query_sets import criteria_of
    from trident_core.search_set import find_set

    def ask(snapshot: Snapshot) -> SetSearch:
        criteria = criteria_of(patterns, flags)
        search = find_set(snapshot, asked.texts(), criteria, select=select, ts=asked.ts, limit=asked.limit)
        if asked.explain:
            tell_plan(search.explain())
        return search

    _answer(asked, by, ask)


def tell_plan(plan: dict[str, Any]) -> None:
    """What --explain says, as JSON on standard error."""
    print(jsonlib.dumps(plan, indent=2, ensure_ascii=False), file=sys.stderr)


def _answer(asked: Asked, by: str, ask: Callable[[Snapshot], Search | SetSearch]) -> None:
    with asked.opened() as snapshot:
        with progress("searching", quiet=asked.json, start="") as advance:
            search = ask(Watched(snapshot, advance))
            if by:
                groups = search.counts_by(by)
            elif asked.json:
                _stream(search, snapshot.session)
            else:
                rows = [row for events in search for row in event_rows(events, snapshot.session)]
        if by:
            _print_counts(groups, by, as_json=asked.json)
        elif not asked.json:
            _print_events(rows, asked.limit)


def _follow(asked: Asked, by: str, count: bool, seconds: float | None) -> None:
    """Single events as they become durable; when it is over, the counts."""
    lines = show_json if asked.json else show_lines

    def show(events: Events, session: Session) -> None:
        lines(event_rows(events, session))

    def search(step: Step) -> Search:
        return asked.search(step.snapshot, after=step.seq[0] - 1, upto=step.seq[1], told=False)

    with reading(asked.store, asked.store_engine) as (made_store, _):
        steps = follow_store(made_store, asked.store, stop=over(seconds))
        found = follow_search(steps, search, by=by, limit=asked.limit, show=None if count else show)
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
        steps = follow_store(made_store, asked.store, after=search.last_seq, stop=over(seconds))

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


def _stream(search: Search | SetSearch, session: Session) -> None:
    """One JSON object a line."""
    for events in search:
        for row in event_rows(events, session):
            print(jsonlib.dumps(row))


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


def _print_events(rows: list[dict[str, Any]], limit: int) -> None:
    out = console()
    if not rows:
        out.print("no event matches")
        return
    # A column that is empty in every row only costs width.
    names = [name for name in rows[0] if any(row[name] not in ("", 0, None) for row in rows)]
    shown = table("", *(f">{name}" if name in NUMBERS else name for name in names), gap=0)
    for row in rows:
        shown.add_row(*("" if row[name] in (0, None) else str(row[name]) for name in names))
    out.print(shown)
    if len(rows) >= limit:
        out.print(f"stopped at --limit {limit}; --count counts them all")


def event_rows(events: Events, session: Session) -> list[dict[str, Any]]:
    """Events as dictionaries for people: symbol, clock time and decimal prices."""
    rows = []
    for e in events:
        aux = e["aux"].tobytes().rstrip(b"\x00 ")
        price = format_price(e["price"], 8 if e["flags"] & EventFlag.PRICE_8DP else session.price_decimals)
        rows.append(
            {
                "seq": int(e["seq"]),
                "time": format_time(e["ts"]),
                "type": chr(e["type"]),
                "symbol": session.directory.symbol(int(e["locate"])),
                "side": chr(e["side"]) if e["side"] else "",
                "price": price if e["type"] in PRICED or e["price"] else None,
                "qty": int(e["qty"]),
                "ref": int(e["ref"]),
                "ref2": int(e["ref2"]),
                "aux": aux.decode("ascii", "backslashreplace"),
            }
        )
    return rows
