"""What stands behind the ring in `trident run`: options, and what is said of it at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli.output import number, table

if TYPE_CHECKING:
    from rich.console import Console

    from trident_core.inputs import Opened
    from trident_core.stats import RunStats


class Stages(StrEnum):
    """Where the store runs."""

    THREADS = "threads"
    PROCESSES = "processes"


Backpressure = Annotated[
    bool | None,
    typer.Option(
        "--backpressure/--live",
        help="When the ring is full: wait for the store, or never wait but put work off and spill. "
        "Files wait unless told otherwise; standard input and pipes are live.",
    ),
]
StagesName = Annotated[
    Stages,
    typer.Option("--stages", help="The store in a thread of this process, or in a process of its own."),
]
Pin = Annotated[
    str | None,
    typer.Option("--pin", metavar="CPU[,CPU]", help="Pin the book's, and the store's, thread to processors."),
]
Inject = Annotated[
    list[str] | None,
    typer.Option(
        "--inject", metavar="FAULT", help="Make the store's disk fail: fsync-stall=77ms@3s; may be repeated."
    ),
]
RingSize = Annotated[
    int | None,
    typer.Option("--ring", metavar="EVENTS", help="Events in the ring, a power of two: 65536, live 1048576."),
]


@dataclass(frozen=True, slots=True)
class Behind:
    """`live`: None is by the input. `ring`: 0 is by the mode."""

    stages: Stages = Stages.THREADS
    live: bool | None = False
    pin: tuple[int, ...] = ()
    inject: tuple[str, ...] = ()
    ring: int = 0

    def is_live(self, opened: Opened) -> bool:
        """A regular file can wait; whatever fills a pipe may not be able to."""
        path = opened.source.path
        return (path is None or not path.is_file()) if self.live is None else self.live

    def ring_capacity(self, live: bool) -> int:
        from trident_core.pipeline import LIVE_RING_CAPACITY, RING_CAPACITY

        return self.ring or (LIVE_RING_CAPACITY if live else RING_CAPACITY)


def render_line(out: Console, stats: RunStats) -> None:
    """The ladder of a live run, and the faults that were asked for."""
    line: Mapping[str, Any] = stats.line
    if line.get("mode") == "live":
        rows = table("ladder of the line", "level", ">entered", ">returned", ">seconds")
        for rung in line["ladder"]:
            rows.add_row(
                rung["level"], number(rung["entered"]), number(rung["returned"]), f"{rung['seconds']:.3f}"
            )
        out.print(rows)
        out.print(
            f"dropped {line['dropped']}, waits {number(stats.ring_full_waits)}, "
            f"syncs put off {number(line['syncs_deferred'])}, "
            f"events spilled {number(line['spilled_events'])}"
            f" (at most {number(line['spill_peak_events'])} at once)"
        )
        if line["spill_failure"]:
            out.print(f"the spill could not be written ({line['spill_failure']}): the book had to wait")
    for fault in line.get("injected", []):
        out.print(f"injected {fault['fault']}: struck {number(fault['fired'])} times")
