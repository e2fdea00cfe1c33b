"""The whole boundary with plugins: one hook per kind. A plugin implements the hooks it has engines for.

Hooks run once, at discovery; arrays run in the loop.
"""

from __future__ import annotations

from collections.abc import Sequence

import pluggy

from trident_core.contracts import CommandSpec, EngineSpec

PROJECT = "trident"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def trident_register_feeds() -> Sequence[EngineSpec]:
    """Feeds: bytes of files, captures and streams -> chunks of framed messages."""
    return ()


@hookspec
def trident_register_parsers() -> Sequence[EngineSpec]:
    """Parsers: framed messages -> EVENTs."""
    return ()


@hookspec
def trident_register_books() -> Sequence[EngineSpec]:
    """Books: EVENTs -> order books."""
    return ()


@hookspec
def trident_register_stores() -> Sequence[EngineSpec]:
    """Stores: EVENTs -> a durable log and its snapshots."""
    return ()


@hookspec
def trident_register_queries() -> Sequence[EngineSpec]:
    """Query engines: patterns -> programs over fields."""
    return ()


@hookspec
def trident_register_sequences() -> Sequence[EngineSpec]:
    """Sequence engines: conditions and row patterns -> searches over events."""
    return ()


@hookspec
def trident_register_commands() -> Sequence[CommandSpec]:
    """Commands: new subcommands of `trident`."""
    return ()
