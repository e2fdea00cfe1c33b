"""What this package registers."""

from __future__ import annotations

from trident_core.contracts import Capability, EngineSpec, Kind
from trident_core.hookspecs import hookimpl


@hookimpl
def trident_register_queries() -> list[EngineSpec]:
    return [
        EngineSpec(
            kind=Kind.QUERY,
            name="reference",
            factory="trident_query.reference:ReferenceQuery",
            summary="Thompson's automaton in pure Python: the law for the other engines",
            capabilities=frozenset({Capability.SPANS}),
        )
    ]
