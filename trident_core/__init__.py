"""Trident's core: contracts, records, plugins and the line. It holds no engine."""

from trident_core.contracts import Capability, Chunk, EngineSpec, Kind, ParseResult, Status
from trident_core.errors import TridentError
from trident_core.hookspecs import hookimpl
from trident_core.session import Instrument, Session

__version__ = "0.1.0"

__all__ = [
    "Capability", "Chunk", "EngineSpec", "Instrument", "Kind", "ParseResult", "Session", "Status",
    "TridentError", "__version__", "hookimpl",
]  # fmt: skip
