"""The options of `trident query`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Symbol = Annotated[str | None, typer.Option("--symbol", metavar="RE", help="Pattern on the symbol.")]
Mpid = Annotated[str | None, typer.Option("--mpid", metavar="RE", help="Pattern on the MPID (F, L).")]
Type = Annotated[str | None, typer.Option("--type", metavar="RE", help="Pattern on the type.")]
Flags = Annotated[str, typer.Option("--flags", help="Pattern flags, of i s m x.")]
Pattern = Annotated[
    list[str] | None,
    typer.Option("--pattern", metavar="NAME=FIELD:RE", help="A named pattern on symbol, mpid, type; repeat."),
]
Select = Annotated[
    str | None, typer.Option("--select", metavar="EXPR", help="Of --pattern: (a or b) and not c; else any.")
]
Since = Annotated[str | None, typer.Option("--from", help="From this time of day: 09:30.")]
Until = Annotated[str | None, typer.Option("--to", help="Up to this time of day.")]
Count = Annotated[bool, typer.Option("--count", help="Only count them.")]
By = Annotated[
    str | None,
    typer.Option(
        "--by", help="With --count: symbol, type, order, mpid, pattern, a time (5m); matches by a measure."
    ),
]
Limit = Annotated[
    int | None, typer.Option("--limit", min=1, help="Show this many; else 20, with --json all.")
]
Where = Annotated[
    str | None, typer.Option("--where", metavar="COND", help="Condition: type='A' and shares>=10000.")
]
Match = Annotated[
    str | None, typer.Option("--match", metavar="PATTERN", help='Sequences of events: "big (E|C)* D".')
]
Define = Annotated[
    list[str] | None, typer.Option("--define", metavar="NAME: COND", help="A row of the pattern; repeat.")
]
Per = Annotated[str, typer.Option("--per", help="Sequences of each order, symbol, mpid, or all.")]
Within = Annotated[str | None, typer.Option("--within", help="Longest time from first to last event: 5ms.")]
Skip = Annotated[
    str, typer.Option("--skip", help="After a match: past (its last event), next, first:X, last:X.")
]
Measure = Annotated[
    list[str] | None, typer.Option("--measure", metavar="NAME = EXPR", help="Shown of each match; repeat.")
]
AllRows = Annotated[bool, typer.Option("--all-rows", help="A row for each event of a match.")]
Sql = Annotated[
    str | None, typer.Option("--sql", metavar="SELECT", help="SELECT … FROM events MATCH_RECOGNIZE (…).")
]
Backtracking = Annotated[
    bool, typer.Option("--allow-backtracking", help="Conditions may look at the match so far; capped.")
]
Steps = Annotated[int, typer.Option("--steps", min=0, help="That cap; 0: 1,000,000 for each partition.")]
State = Annotated[
    Path | None, typer.Option("--state", metavar="FILE", help="Go on from there; saved at the end.")
]
Follow = Annotated[bool, typer.Option("--follow", help="Go on with what becomes durable, until Ctrl-C.")]
Seconds = Annotated[float | None, typer.Option("--seconds", min=0.0, help="With --follow: for so long.")]
Explain = Annotated[bool, typer.Option("--explain", help="Tell on stderr what was compiled.")]
