"""One pass over an input that writes tables: the line, the collector and the folder put together."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from trident_core.contracts import Feed
from trident_core.decode import LINGER_S
from trident_core.errors import PluginError
from trident_core.export.columns import Layout, Prices, SymbolCodes
from trident_core.export.files import Format
from trident_core.export.folder import TableFolder
from trident_core.inputs import Opened
from trident_core.pipeline import Line, LineOptions
from trident_core.provenance import SourceMd5, missing_symbols, origin, outcome, write_summary
from trident_core.readahead import ReadAhead
from trident_core.session import Session
from trident_core.stats import RunStats
from trident_core.tables import catalog, databento
from trident_core.tables.catalog import Naming
from trident_core.tables.collect import Collector, TableOptions, names_of, typed_types
from trident_core.tables.tap import TappedParser

#: Version of the tables' layout, in the metadata.
SCHEMA_VERSION: Final = "1"
BATCH: Final = 1 << 15


@dataclass(frozen=True, slots=True)
class ConvertOptions:
    """What to write and how. `start`, `until`: times of day in ns; `symbols` empty: all."""

    tables: tuple[str, ...] = ("bbo", "trades")
    form: Format = Format.PARQUET
    prices: Prices = Prices.FIXED
    naming: Naming = Naming.TRIDENT
    symbols: tuple[str, ...] = ()
    by_symbol: bool = False
    start: int = 0
    until: int | None = None
    depth: int = 10
    bars: tuple[str, ...] = ("1m",)
    md5: bool = True


@dataclass(slots=True)
class Converted:
    """What was written: rows and bytes of each table; `missing` symbols were asked for and are not there."""

    folder: Path
    options: ConvertOptions
    stats: RunStats
    rows: dict[str, int] = field(default_factory=dict)
    bytes: dict[str, int] = field(default_factory=dict)
    voided: int = 0
    missing: tuple[str, ...] = ()
    metadata: dict[str, str] = field(default_factory=dict)

    def where(self, name: str) -> str:
        """The file of a table, or the pattern of its files."""
        suffix = self.options.form.value
        return f"{name}/symbol=*/part-*.{suffix}" if self.options.by_symbol else f"{name}.{suffix}"

    def to_json(self) -> dict[str, Any]:
        tables = {
            name: {"rows": rows, "bytes": self.bytes.get(name, 0), "files": self.where(name)}
            for name, rows in self.rows.items()
        }
        return {
            "folder": str(self.folder), "tables": tables, "voided": self.voided,
            "missing": list(self.missing), "metadata": self.metadata, "run": self.stats.to_json(),
        }  # fmt: skip


def run_convert(
    opened: Opened,
    folder: Path,
    options: ConvertOptions,
    *,
    advance: Callable[[int, int | None, int], None] | None = None,
) -> Converted:
    """Convert `opened` into `folder`; the caller closes `opened`. Interrupted: no file is left.

    Raises UsageError for tables and options that do not exist, and if none of the symbols is in the input;
    InputError for what cannot be read or written; PluginError if the parser lacks typed tables and one of
    the tables needs them. Nothing is left in `folder` then.
    """
    session = opened.session
    chosen = catalog.select(options.tables, options.naming)
    names = names_of(chosen, options.bars)
    tap = _tap(opened, typed_types(chosen))
    parser = tap or opened.parser
    metadata = _metadata(opened, options, names)
    tables = TableFolder(
        folder, {name: _layout(name, options, session) for name in names}, options.form,
        SymbolCodes(session), metadata, by_symbol=options.by_symbol,
    )  # fmt: skip
    md5 = SourceMd5(opened.source.path if options.md5 else None)
    collector: Collector | None = None
    try:
        collector = Collector(
            session, chosen, tables.put, tap=tap, mark=tables.mark,
            options=TableOptions(options.depth, options.bars, options.start, options.naming, folder),
        )  # fmt: skip
        collector.warm_up()
        feed = _early(opened)
        linger_s = math.inf if feed is not opened.feed else LINGER_S
        line = Line(
            feed, opened.source, parser, opened.book, progress=advance, observer=collector,
            options=LineOptions(
                symbols=options.symbols, until=options.until, batch=BATCH, linger_s=linger_s
            ),
        )  # fmt: skip
        stats = line.run()
        opened.tell(stats)
        done = Converted(folder, options, stats, missing=missing_symbols(session, options.symbols))
        if stats.interrupted:
            md5.stop()
            tables.drop()
            return done
        collector.finish()
        done.voided, done.rows = collector.voided, tables.rows
        done.metadata = metadata | outcome(stats) | {"trident.rows": json.dumps(done.rows)} | md5.result()
        done.bytes = tables.finish(done.metadata)
    except BaseException:
        md5.stop()
        tables.drop()
        raise
    finally:
        if collector:
            collector.close()
    write_summary(folder, done.to_json())
    return done


def _early(opened: Opened) -> Feed:
    """The feed, read ahead if it is a file's: a pipe may stall, and Ctrl-C must not wait for it."""
    path = opened.source.path
    return ReadAhead(opened.feed) if path and path.is_file() else opened.feed


def _tap(opened: Opened, types: str) -> TappedParser | None:
    """The parser with a tap, if typed rows are needed."""
    tap = opened.tap(types) if types else None
    if types and tap is None:
        raise PluginError(
            f"parser {opened.engines['parser']!r} has no typed tables, which types {', '.join(types)} need",
            hint="leave out noii, mwcb, ipo, direct_listing and directory, or choose another --parser",
        )
    return tap


def _layout(name: str, options: ConvertOptions, session: Session) -> Layout:
    theirs = options.naming is Naming.DATABENTO
    decimals = databento.PRICE_DECIMALS if theirs else session.price_decimals
    dtype = catalog.dtype_of(name, options.naming, options.depth)
    return Layout(dtype, options.prices, decimals, undefined=theirs, symbol=not options.by_symbol)


def _metadata(opened: Opened, options: ConvertOptions, names: tuple[str, ...]) -> dict[str, str]:
    """What is known before the first byte is read."""
    session = opened.session
    scale = databento.PRICE_DECIMALS if options.naming is Naming.DATABENTO else session.price_decimals
    return {
        "trident.schema": SCHEMA_VERSION,
        **origin(opened),
        "trident.tables": ",".join(names),
        "trident.symbols": ",".join(options.symbols) or "all",
        "trident.naming": options.naming.value,
        "trident.price": options.prices.value,
        "trident.price_scale": str(scale),
        "trident.qty_scale": str(session.qty_decimals),
    }
