"""Driving sequence engines, for the suite and for `regen`: questions of vectors, answers as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np

from trident_conformance import drive, vectors
from trident_conformance.evidence import asked, given
from trident_core.dtypes import EVENT, MATCHED, Events, Matched
from trident_core.errors import PatternError
from trident_core.session import Session

#: A match: what its partition stands for, first and last seq, the last row's time, has it rows at all?
Found = tuple[Any, int, int, int, bool]

_OPTIONS: Final = ("define", "per", "within", "measures", "all_rows")


def options(data: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `search` that a vector gives, the pattern aside."""
    return {name: data[name] for name in _OPTIONS if name in data}


def events_of(data: dict[str, Any]) -> Events:
    """A vector's `events`, or one for each letter of `types`: of order 7 and locate 1, with 100 shares added
    or 1 taken, at the times `ts` or 1 µs apart."""
    if "events" in data:
        return vectors.to_events(data["events"])
    times = data.get("ts", [1_000 * n for n in range(1, len(data["types"]) + 1)])
    rows = [
        {"type": letter, "ref": 7, "qty": 100 if letter in "AF" else 1, "ts": time}
        for letter, time in zip(data["types"], times, strict=True)
    ]
    return vectors.to_events(rows)


def told(search: Any, found: Sequence[Matched]) -> list[Found]:
    """Matches in plain values, by first row, then last."""
    every = np.concatenate([*found, np.empty(0, MATCHED)])
    return sorted(
        (
            (
                search.value(int(m["key"])), int(m["first"]), int(m["last"]),
                int(m["last_ts"]) if m["rows"] else 0, bool(m["rows"]),
            )
            for m in every
        ),
        key=lambda one: (one[1], one[2], str(one[0])),
    )  # fmt: skip


def answer(engine: Any, match: str, batches: Sequence[Events], session: Session, **how: Any) -> list[Found]:
    """All matches of a pattern in events that come in batches."""
    asked(match=match, **how, events=list(batches))
    search = engine.search(match, session, **how)
    found = [search.feed(batch) for batch in batches]
    found.append(search.finish())
    matches = told(search, found)
    drive.equal("total", search.total, len(matches))
    return matches


def measured(engine: Any, match: str, events: Events, session: Session, **how: Any) -> list[Any]:
    """For each match what `rows` says of it, prices as texts; empty matches left out."""
    asked(match=match, **how, events=events)
    search = engine.search(match, session, **how)
    found = told(search, [search.feed(events), search.finish()])
    again = engine.search(match, session, **how)
    numbers, letters = again.partition(events)
    made = []
    for _, first, last, _, rows in found:
        if rows:
            at = int(np.searchsorted(events["seq"], first))
            inside = (numbers == numbers[at]) & (events["seq"] >= first) & (events["seq"] <= last)
            made.append([_plain(row) for row in again.rows(events[inside], letters[inside])])
    return made


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Fraction) else value for name, value in row.items()}


def hold(engine: Any, data: dict[str, Any]) -> None:
    """Hold an engine against a vector of conditions or of a row pattern."""
    __tracebackhide__ = True
    session = vectors.to_session(data.get("symbols", {}))
    if "conditions" in data:
        events = events_of(data)
        for text, seqs in data["conditions"].items():
            given(condition=text, events=events)
            drive.equal(text, true_at(engine.predicate(text, session), events), seqs)
        return
    how = options(data)
    events = events_of(data)
    found = answer(engine, data["match"], [events], session, **how)
    matches = [[first, last] if rows else [first] for _, first, last, _, rows in found]
    drive.equal("matches", matches, data["matches"])
    keys = data.get("keys")
    drive.equal("keys", [key for key, *_ in found] if keys else None, keys)
    times = {int(event["seq"]): int(event["ts"]) for event in events}
    expected = [times[last] if rows else 0 for _, _, last, _, rows in found]
    drive.equal("last_ts", [ts for *_, ts, _ in found], expected)
    if "rows" in data:
        drive.equal("rows", measured(engine, data["match"], events, session, **how), data["rows"])


def true_at(predicate: Any, events: Events) -> list[int]:
    """The seq of the events for which a condition is true."""
    mask = predicate.match(events)
    drive.equal("dtype and shape", (mask.dtype, mask.shape), (np.dtype(np.bool_), (len(events),)))
    return [int(seq) for seq in events["seq"][mask]]


def refused(engine: Any, data: dict[str, Any]) -> PatternError | None:
    """The error with which an engine refuses a vector's condition or pattern; None: it takes it."""
    given(**{name: data[name] for name in ("where", "match", "define", "measures") if name in data})
    try:
        if "where" in data:
            engine.predicate(data["where"], Session()).match(np.zeros(1, EVENT))
        else:
            engine.search(data["match"], Session(), **options(data))
    except PatternError as error:
        return error
    return None
