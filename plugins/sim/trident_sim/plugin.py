"""What this package registers: the commands `trident simulate` and `trident facts`."""

from __future__ import annotations

from collections.abc import Sequence

from trident_core.contracts import CommandSpec
from trident_core.hookspecs import hookimpl


@hookimpl
def trident_register_commands() -> Sequence[CommandSpec]:
    return [
        CommandSpec(
            name="simulate",
            target="trident_sim.command:simulate",
            summary="Write a simulated ITCH 5.0 day to OUT: no market data needed.",
        ),
        CommandSpec(
            name="facts",
            target="trident_facts.command:facts",
            summary="Measure the known facts of order books on DAYs, side by side.",
        ),
    ]
