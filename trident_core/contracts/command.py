"""Commands: new subcommands of `trident`."""

from __future__ import annotations

from dataclasses import dataclass

from trident_core.contracts.engine import Kind


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A subcommand of `trident` that a plugin adds. `target` is "module:function", a typer-style function,
    imported only when the command is run or its own --help asked for."""

    name: str
    target: str
    summary: str
    contract: tuple[int, int] = (1, 0)
    kind: Kind = Kind.COMMAND
