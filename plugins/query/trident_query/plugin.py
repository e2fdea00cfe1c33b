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
        EngineSpec(
            kind=Kind.QUERY,
            name="llvm",
            factory="trident_query.llvm.engine:LlvmQuery",
            summary="machine code for each pattern: a SIMD circuit for columns, a scan for texts",
            capabilities=_ALL,
            requires=("llvmlite",),
        ),
        EngineSpec(
            kind=Kind.QUERY,
            name="glushkov",
            factory="trident_query.bits_engine:BitsQuery",
            summary="positions as bits: for patterns whose DFA is too large",
            capabilities=_ALL,
            requires=("numba",),
        ),
        EngineSpec(
            kind=Kind.QUERY,
            name="re2",
            factory="trident_query.re2_engine:Re2Query",
            summary="google-re2 as an outside oracle; refuses what it understands differently",
            capabilities=_ALL - {Capability.ENDS},
            requires=("re2",),
            install_hint="pip install 'trident-core[re2]'",
        ),
        EngineSpec(
            kind=Kind.QUERY,
            name="auto",
            factory="trident_query.auto:AutoQuery",
            summary="chooses an engine for each pattern and input; explain says which and why",
            capabilities=_ALL,
            requires=("numba",),
        ),
    ]


@hookimpl
def trident_register_sequences() -> list[EngineSpec]:
    return [
        EngineSpec(
            kind=Kind.SEQUENCE,
            name="reference",
            factory="trident_query.sequence.engines:ReferenceSequences",
            summary="Conditions one event at a time, row patterns by backtracking: the law",
        ),
        EngineSpec(
            kind=Kind.SEQUENCE,
            name="numba",
            factory="trident_query.sequence.engines:NumbaSequences",
            summary="A register machine for conditions, one automaton for all starts: linear, streaming",
            capabilities=frozenset({Capability.STREAMING}),
            requires=("numba",),
        ),
    ]
