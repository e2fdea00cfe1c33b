"""What this package adds to Trident."""

from trident_core.contracts import EngineSpec, Kind
from trident_core.hookspecs import hookimpl


@hookimpl
def trident_register_books():
    return [
        EngineSpec(
            kind=Kind.BOOK,
            name="sorted",
            factory="trident_book_sorted.book:SortedBook",
            summary="sortedcontainers in pure Python: short, logarithmic, easy to change",
            capabilities=frozenset({"sharded"}),
            requires=("sortedcontainers",),
            install_hint="pip install sortedcontainers",
        )
    ]
