"""What this package registers."""

from __future__ import annotations

from trident_core.contracts import Capability, EngineSpec, Kind
from trident_core.hookspecs import hookimpl

_ALL = frozenset({Capability.SPANS, Capability.FIRST, Capability.ENDS, Capability.SETS})


@hookimpl
def trident_register_queries() -> list[EngineSpec]:
    return [
        EngineSpec(
            kind=Kind.QUERY,
            name="reference",
            factory="trident_query.reference:ReferenceQuery",
            summary="Thompson's automaton in pure Python: the law for the other engines",
            capabilities=_ALL,
        ),
        EngineSpec(
            kind=Kind.QUERY,
            name="dfa",
            factory="trident_query.table_engine:TableQuery",
            summary="a DFA's table over bytes, four records side by side",
            capabilities=_ALL,
            requires=("numba",),
        ),
    ]
