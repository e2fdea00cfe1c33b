"""What this package registers: the command `trident simulate`."""

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
        )
    ]
