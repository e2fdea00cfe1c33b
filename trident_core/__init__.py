"""Trident's core: contracts, records, plugins and the line. It holds no engine.

With `import trident_core as trident`, `trident.open` gives a day's tables and books. It, `Day`, `LazyTable`
and `BookSnapshot` are imported when first asked for, so that the command line starts without numpy.
"""

from typing import TYPE_CHECKING, Any

from trident_core.contracts import Capability, Chunk, EngineSpec, Kind, ParseResult, Status
from trident_core.errors import TridentError
from trident_core.hookspecs import hookimpl
from trident_core.session import Instrument, Session

if TYPE_CHECKING:
    from trident_core.day import BookSnapshot, Day, LazyTable
    from trident_core.day import open_day as open  # noqa: A004, F401  # not in __all__: it would hide Python's

__version__ = "0.1.0"

__all__ = [
    "BookSnapshot", "Capability", "Chunk", "Day", "EngineSpec", "Instrument", "Kind", "LazyTable",
    "ParseResult", "Session", "Status", "TridentError", "__version__", "hookimpl",
]  # fmt: skip

_LATE = {"open": "open_day", "Day": "Day", "LazyTable": "LazyTable", "BookSnapshot": "BookSnapshot"}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from trident_core import day

    return getattr(day, _LATE[name])


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
