"""`trident query --follow`: events as they become durable, until Ctrl-C."""

from __future__ import annotations

import json as jsonlib
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trident_core.cli.event_rows import event_rows, met
from trident_core.cli.output import number

if TYPE_CHECKING:
    from trident_core.dtypes import Events
    from trident_core.follow import Step
    from trident_core.search import Search
    from trident_core.search_set import SetSearch
    from trident_core.session import Session

#: Columns of a line for people, with their widths; negative is to the left.
_COLUMNS = (("seq", 12), ("time", 18), ("type", 1), ("symbol", -8), ("side", 1), ("price", 12), ("qty", 9))
_RIGHTMOST = ("ref", "ref2", "aux")


@dataclass(slots=True)
class Followed:
    """What was found so far: events that match, by symbol, type or pattern; up to which sequence number."""

    by: str
    count: int = 0
    last_seq: int = 0
    groups: Counter[str] = field(default_factory=Counter)

    def note(self, events: Events, session: Session, names: Sequence[list[str]] | None = None) -> None:
        self.count += len(events)
        self.last_seq = int(events["seq"][-1])  # Ctrl-C may come before the step is over
        if self.by == "pattern":
            self.groups.update(name for met in names or () for name in met)
            return
        column = events["type"] if self.by == "type" else events["locate"]
        for value in set(column.tolist()):
            name = chr(value) if self.by == "type" else session.directory.symbol(value)
            self.groups[name] += int((column == value).sum())

    def to_json(self) -> dict[str, Any]:
        return {
            "count": self.count, "last_seq": self.last_seq, f"by_{self.by}": dict(self.groups.most_common()),
        }  # fmt: skip


def follow_search(
    steps: Iterable[Step], search: Callable[[Step], Search | SetSearch], *, by: str, limit: int,
    show: Callable[[list[dict[str, Any]]], None] | None,
) -> Followed:  # fmt: skip
    """Search each step of a store, `show` what matches, until Ctrl-C or `limit` events (0: no limit).
    Raises what the steps and the search raise."""
    found = Followed(by)
    try:
        for step in steps:
            session, asked = step.snapshot.session, search(step)
            for events, masks in asked.labelled():
                left = limit - found.count if limit else len(events)
                part, names = events[:left], met(asked, masks)
                found.note(part, session, names)
                if show is not None:
                    show(event_rows(part, session, names))
                    sys.stdout.flush()
                if limit and found.count >= limit:
                    return found
            found.last_seq = step.seq[1]
    except KeyboardInterrupt:
        pass
    return found


def show_json(rows: list[dict[str, Any]]) -> None:
    """One JSON object a line."""
    for row in rows:
        print(jsonlib.dumps(row))


def show_lines(rows: list[dict[str, Any]]) -> None:
    """One line of text for each event, its columns under each other."""
    for row in rows:
        cells = [
            f"{'' if row[name] is None else row[name]:{'<' if width < 0 else '>'}{abs(width)}}"
            for name, width in _COLUMNS
        ]
        cells += [f"{name} {row[name]}" for name in _RIGHTMOST if row[name]]
        if row.get("patterns"):
            cells.append(f"patterns {' '.join(row['patterns'])}")
        print(" ".join(cells).rstrip())


def tell(found: Followed) -> None:
    """The counts, when it is over."""
    groups = ", ".join(f"{name or '(none)'} {number(n)}" for name, n in found.groups.most_common(12))
    print(
        f"{number(found.count)} events matched up to sequence number {number(found.last_seq)}"
        + (f": {groups}" if groups else ""),
        file=sys.stderr,
    )
