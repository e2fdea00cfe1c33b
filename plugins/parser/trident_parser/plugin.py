"""Entry point: the parsers of this package."""

from __future__ import annotations

from collections.abc import Sequence

from trident_core.contracts import Capability, EngineSpec, Kind
from trident_core.hookspecs import hookimpl


@hookimpl
def trident_register_parsers() -> Sequence[EngineSpec]:
    """The reference, the law for others of ITCH 5.0; a fast one; and parsers of other formats."""
    return [
        EngineSpec(
            kind=Kind.PARSER,
            name="reference",
            factory="trident_parser.reference:ReferenceParser",
            summary="ITCH 5.0 in plain Python, written to be read: events, typed tables, encoder",
            capabilities=frozenset({Capability.ENCODE, Capability.TABLES, Capability.LENIENT}),
            protocols=("itch50",),
        ),
        EngineSpec(
            kind=Kind.PARSER,
            name="numba",
            factory="trident_parser.numba_parser:NumbaParser",
            summary="ITCH 5.0 in a compiled kernel: events, typed tables, encoder",
            capabilities=frozenset({Capability.ENCODE, Capability.TABLES, Capability.LENIENT}),
            protocols=("itch50",),
            requires=("numba",),
        ),
        EngineSpec(
            kind=Kind.PARSER,
            name="lobster",
            factory="trident_parser.lobster:LobsterParser",
            summary="LOBSTER message files (csv), in plain Python",
            protocols=("lobster-csv",),
        ),
        EngineSpec(
            kind=Kind.PARSER,
            name="databento",
            factory="trident_parser.databento:DatabentoParser",
            summary="MBO records of Databento's DBN files, in a compiled kernel",
            protocols=("dbn-mbo",),
            requires=("numba",),
        ),
    ]
