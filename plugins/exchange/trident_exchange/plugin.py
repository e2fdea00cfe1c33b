"""What this package registers: the commands `trident exchange` and `trident order`."""

from __future__ import annotations

from collections.abc import Sequence

from trident_core.contracts import CommandSpec
from trident_core.hookspecs import hookimpl


@hookimpl
def trident_register_commands() -> Sequence[CommandSpec]:
    return [
        CommandSpec(
            name="exchange",
            target="trident_exchange.command:exchange",
            summary="An exchange on this machine: OUCH 5.0 in, ITCH 5.0 out.",
        ),
        CommandSpec(
            name="order",
            target="trident_exchange.order_command:order",
            summary="Orders to a running exchange: buy 100 AAPL 150.25.",
        ),
    ]
