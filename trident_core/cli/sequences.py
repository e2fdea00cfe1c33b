"""The part of `trident query` that looks for sequences: `--match`, `--define`, `--per`, `--within` and the
rest.
"""

from __future__ import annotations

import json as jsonlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trident_core.cli.output import console, emit, number, table
from trident_core.dtypes import MATCHED
from trident_core.errors import UsageError
from trident_core.session import format_price, format_time

if TYPE_CHECKING:
    from trident_core.contracts import Query, Sequences, SequenceSearch
    from trident_core.dtypes import Events, Matched
    from trident_core.session import Session

#: Matches whose own events are fetched: for their labels, times and measures.
FETCHED_MAX: Final = 100_000
#: Matches that are kept before the limit is applied to them.
KEPT_AT_ONCE: Final = 1 << 16
#: A follower looks for new events so often, in seconds.
POLL_S: Final = 0.2


@dataclass(slots=True)
class Wanted:
    """The options of a search for sequences."""

    match: str
    define: list[str] = field(default_factory=list)
    per: str = "order"
    within: str | None = None
    skip: str = "past"
    measures: list[str] = field(default_factory=list)
    all_rows: bool = False
    count: bool = False
    by: str | None = None
    limit: int = 0
    json: bool = False
    state: Path | None = None
    explain: bool = False

    def search(self, engine: Sequences, session: Session, texts: Query | None) -> SequenceSearch:
        return engine.search(
            self.match, session, define=self.define, per=self.per, within=self.within, skip=self.skip,
            measures=self.measures, all_rows=self.all_rows, texts=texts,
            count_only=self.count and self.by is None,
        )  # fmt: skip


Scan = Callable[[int], Iterator["Events"]]  # events whose seq is greater, in batches


def run(wanted: Wanted, engine: Sequences, session: Session, texts: Query | None, scan: Scan) -> None:
    """Search the events that `scan` gives, and print what was found."""
    if wanted.by is not None:
        _check_group(wanted)
    search = wanted.search(engine, session, texts)
    resumed = wanted.state is not None and wanted.state.exists()
    if resumed and wanted.state is not None:
        search.load(wanted.state)
    start, before = search.last_seq, search.total
    limit = wanted.limit if wanted.by is None else 0
    kept: list[Matched] = [np.empty(0, MATCHED)]
    for events in scan(start):
        kept.append(search.feed(events))
        if limit and sum(map(len, kept)) > 4 * limit + KEPT_AT_ONCE:
            kept = [_first(kept, limit)]
    if wanted.state is None:
        kept.append(search.finish())
    else:
        search.save(wanted.state)
    matches = _first(kept, limit)
    if wanted.explain:
        print(jsonlib.dumps(search.explain(), indent=2, ensure_ascii=False), file=sys.stderr)
    if wanted.count and wanted.by is None:
        _print_count(search.total - before, wanted)
        return
    rows = list(told(matches, wanted, engine, session, texts, search, scan))
    if wanted.by is not None:
        _print_groups(rows, wanted.by, wanted)
    elif wanted.json:
        for row in rows:
            print(jsonlib.dumps(row))
    else:
        _print(rows, search.total - before, wanted)


def _check_group(wanted: Wanted) -> None:
    """Raises UsageError for a --by that a match does not have."""
    names = [measure.partition("=")[0].strip() for measure in wanted.measures]
    names += [wanted.per, "symbol", "labels", "events"]
    if wanted.by not in names:
        raise UsageError(f"no {wanted.by!r} to group by", hint=f"there are {', '.join(names)}")


def _first(kept: list[Matched], limit: int) -> Matched:
    """The first matches by their last event, then their first; 0 is no limit."""
    matches = np.concatenate(kept)
    order = np.lexsort((matches["first"], matches["last"]))
    return matches[order[:limit] if limit else order]


def _print_count(total: int, wanted: Wanted) -> None:
    def render(out: Any) -> None:
        out.print(f"{number(total)} matches")

    emit({"matches": total, "per": wanted.per}, as_json=wanted.json, render=render)


def told(
    matches: Matched, wanted: Wanted, engine: Sequences, session: Session, texts: Query | None,
    search: SequenceSearch, scan: Scan,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Matches as dictionaries for people; a second pass fetches their events where there are not too many."""
    fetched: dict[int, tuple[Any, Any]] = {}
    if len(matches) <= FETCHED_MAX:
        fetched = fetch(matches, wanted.search(engine, session, texts), scan)
    elif wanted.measures or wanted.all_rows or wanted.by:
        raise UsageError(
            f"measures of {len(matches):,} matches, more than {FETCHED_MAX:,}, the cap", hint="set --limit"
        )
    for place, match in enumerate(matches):
        row: dict[str, Any] = {
            wanted.per: search.value(int(match["key"])),
            "first_seq": int(match["first"]), "last_seq": int(match["last"]),
            "last_time": format_time(match["last_ts"]),
        }  # fmt: skip
        if place not in fetched:
            yield row
            continue
        events, letters = fetched[place]
        if len(events):
            symbol = session.directory.symbol(int(events["locate"][0]))
            span = int(events["ts"][-1]) - int(events["ts"][0])
            row |= {"symbol": symbol, "time": format_time(events["ts"][0]), "ns": span, "events": len(events)}
        row["events"] = len(events) if match["rows"] else 0
        for extra in search.rows(
            events if match["rows"] else events[:0], letters[: None if match["rows"] else 0]
        ):
            yield row | {name: _shown(value, session) for name, value in extra.items()}


def _shown(value: Any, session: Session) -> Any:
    if isinstance(value, Fraction):
        scaled = value * 10 ** max(session.price_decimals, 8)
        return (
            format_price(int(scaled), max(session.price_decimals, 8))
            if scaled.denominator == 1
            else float(value)
        )
    return value


def fetch(matches: Matched, again: SequenceSearch, scan: Scan) -> dict[int, tuple[Any, Any]]:
    """The events and letters of each match, by its place, in one more pass over the same events."""
    parts: dict[int, list[tuple[Any, Any]]] = {place: [] for place in range(len(matches))}
    order = np.argsort(matches["first"], kind="stable")
    begun, active = 0, {}
    for events in scan(0) if len(matches) else ():
        keys, letters = again.partition(events)
        seqs, last = events["seq"], int(events["seq"][-1])
        while begun < len(order) and int(matches["first"][order[begun]]) <= last:
            place = int(order[begun])
            active[place] = int(keys[np.searchsorted(seqs, matches["first"][place])])
            begun += 1
        for place, key in list(active.items()):
            low, high = np.searchsorted(
                seqs, (matches["first"][place], matches["last"][place] + np.uint64(1))
            )
            mine = low + np.flatnonzero(keys[low:high] == key)
            parts[place].append((events[mine], letters[mine]))
            if int(matches["last"][place]) <= last:
                del active[place]
        if begun == len(order) and not active:
            break
    return {
        place: (np.concatenate([one[0] for one in pieces]), np.concatenate([one[1] for one in pieces]))
        for place, pieces in parts.items()
        if pieces
    }


def _print(rows: list[dict[str, Any]], total: int, wanted: Wanted) -> None:
    out = console()
    if not rows:
        out.print("no match")
        return
    hidden = {"last_time"} if "time" in rows[0] else set()
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name not in hidden]
    front = list(dict.fromkeys([wanted.per, "symbol", "time", "ns", "events", "labels"]))
    names = [name for name in front if name in names] + [name for name in names if name not in front]
    text = {"symbol", "time", "labels", "last_time"}
    shown = table("", *(name if name in text else f">{name}" for name in names), gap=0)
    for row in rows:
        shown.add_row(*(_cell(row.get(name)) for name in names))
    out.print(shown)
    cut = wanted.limit and total > wanted.limit
    out.print(f"{number(total)} matches" + (f"; stopped at --limit {wanted.limit}" if cut else ""))


def _print_groups(rows: list[dict[str, Any]], by: str, wanted: Wanted) -> None:
    """Matches by a measure (or the partition, the symbol), with the sums of the other measures."""
    sums = [measure.partition("=")[0].strip() for measure in wanted.measures]
    sums = [name for name in sums if name != by]
    groups: dict[Any, dict[str, Any]] = {}
    for row in rows:
        group = groups.setdefault(row[by], {by: row[by], "matches": 0, **dict.fromkeys(sums, 0)})
        group["matches"] += 1
        for name in sums:
            group[name] += row[name] if isinstance(row[name], (int, float)) else 0
    made = sorted(groups.values(), key=lambda group: (-group["matches"], str(group[by])))

    def render(out: Any) -> None:
        shown = table("", by, ">matches", *(f">{name}" for name in sums), gap=0)
        for group in made[: wanted.limit or None]:
            shown.add_row(*(_cell(value) for value in group.values()))
        out.print(shown)
        cut = (
            f"; the first {wanted.limit} groups of {len(made)}"
            if wanted.limit and len(made) > wanted.limit
            else ""
        )
        out.print(f"{number(len(rows))} matches{cut}")

    emit(made, as_json=wanted.json, render=render)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return "" if value is None else str(value)


def follow(wanted: Wanted, search: SequenceSearch, new: Scan, *, until: float | None = None) -> None:
    """Alerts as they happen, one line each, until interrupted (or for so many seconds): `new(seq)` looks
    again for events that came since. The state is saved at the end where `wanted.state` says so."""
    ending = None if until is None else time.monotonic() + until
    try:
        while True:
            for events in new(search.last_seq):
                for match in search.feed(events):
                    _alert(match, search, wanted)
            if ending is not None and time.monotonic() >= ending:
                break
            time.sleep(POLL_S)
    except KeyboardInterrupt:
        pass
    if wanted.state is not None:
        search.save(wanted.state)
    print(f"followed up to seq {search.last_seq}: {search.total:,} matches", file=sys.stderr)


def _alert(match: Any, search: SequenceSearch, wanted: Wanted) -> None:
    row = {
        "time": format_time(match["last_ts"]), wanted.per: search.value(int(match["key"])),
        "first_seq": int(match["first"]), "last_seq": int(match["last"]),
    }  # fmt: skip
    print(
        jsonlib.dumps(row) if wanted.json else "  ".join(f"{name} {value}" for name, value in row.items()),
        flush=True,
    )
