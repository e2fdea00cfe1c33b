"""The built-in book engines."""

from __future__ import annotations

from trident_core.contracts import Capability, EngineSpec, Kind
from trident_core.hookspecs import hookimpl


@hookimpl
def trident_register_books() -> list[EngineSpec]:
    """The engines of this package."""
    return [
        EngineSpec(
            kind=Kind.BOOK,
            name="numba",
            factory="trident_book.numba_book:NumbaBook",
            summary="one cache line for each order and level, memory asked for ahead; the default",
            capabilities=frozenset({Capability.SHARDED, Capability.MATCH}),
            requires=("numba",),
        ),
        EngineSpec(
            kind=Kind.BOOK,
            name="reference",
            factory="trident_book.reference:ReferenceBook",
            summary="pure Python, written to be read; the law for the others",
            capabilities=frozenset({Capability.SHARDED, Capability.MATCH}),
        ),
    ]
