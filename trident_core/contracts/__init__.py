"""The contracts: what each kind of engine must do. These docstrings are normative; docs/contracts explains.

Engines satisfy Protocols; there is nothing to inherit. Batches cross the boundary, single messages never do.
Arrays in and out are caller-owned, C-contiguous and 1-D unless a method says otherwise; an engine must not
keep a view of a caller's array after it returns, and must not write to an array it was given to read.

One module a kind; everything is imported from here.
"""

from __future__ import annotations

from trident_core.contracts.book import Book, TimedBook, TradingState
from trident_core.contracts.command import CommandSpec
from trident_core.contracts.engine import CONTRACT_VERSIONS, Capability, EngineSpec, Kind, Warmable
from trident_core.contracts.feed import ByteSource, Chunk, Feed, FeedOptions
from trident_core.contracts.matching import (
    Allocation,
    CrossType,
    MarketRules,
    Matcher,
    MatchingBook,
    Op,
    OrderFlag,
    OrderKind,
    Reason,
    ReportFlag,
    ReportKind,
    SelfTrade,
    Submitted,
    TimeInForce,
)
from trident_core.contracts.parser import Encoder, Parser, ParseResult, Status, TableParser
from trident_core.contracts.query import (
    EndsProgram,
    Explained,
    Program,
    Query,
    SetProgram,
    SetQuery,
    SpanProgram,
)
from trident_core.contracts.sequence import Predicate, ScanBounds, Sequences, SequenceSearch
from trident_core.contracts.store import (
    Finding,
    Pressure,
    Recovery,
    Sheddable,
    Snapshot,
    Store,
    Verification,
    WatchedStore,
)

__all__ = [
    "CONTRACT_VERSIONS",
    "Allocation",
    "Book",
    "ByteSource",
    "Capability",
    "Chunk",
    "CommandSpec",
    "CrossType",
    "Encoder",
    "EndsProgram",
    "EngineSpec",
    "Explained",
    "Feed",
    "FeedOptions",
    "Finding",
    "Kind",
    "MarketRules",
    "Matcher",
    "MatchingBook",
    "Op",
    "OrderFlag",
    "OrderKind",
    "ParseResult",
    "Parser",
    "Predicate",
    "Pressure",
    "Program",
    "Query",
    "Reason",
    "Recovery",
    "ReportFlag",
    "ReportKind",
    "ScanBounds",
    "SelfTrade",
    "SequenceSearch",
    "Sequences",
    "SetProgram",
    "SetQuery",
    "Sheddable",
    "Snapshot",
    "SpanProgram",
    "Status",
    "Store",
    "Submitted",
    "TableParser",
    "TimeInForce",
    "TimedBook",
    "TradingState",
    "Verification",
    "Warmable",
    "WatchedStore",
]
