"""A table that was asked for and is not made yet: that happens when it is iterated or collected."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from trident_core.day import columns
from trident_core.day.records import joined
from trident_core.errors import PluginError, UsageError
from trident_core.session import Session, format_time
from trident_core.tables.common import Table

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Price = Literal["fixed", "float", "decimal"]
Time = Literal["utc", "ns"]

PRICES: Final = ("fixed", "float", "decimal")
TIMES: Final = ("utc", "ns")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for: a table, its symbols (None: all), a window [start, end) of the time of day in ns."""

    table: str
    symbols: tuple[str, ...] | None
    start: int | None
    end: int | None
    price: Price = "fixed"
    time: Time = "utc"

    def text(self) -> str:
        """In words."""
        who = "all symbols" if self.symbols is None else ", ".join(self.symbols[:4])
        if self.symbols and len(self.symbols) > 4:
            who += f" and {len(self.symbols) - 4} more"
        start, end = (None if at is None else format_time(at)[:8] for at in (self.start, self.end))
        when = f", {start or 'begin'} to {end or 'end'}" if start or end else ""
        return f"{self.table} of {who}{when}"


class LazyTable:
    """One table of a day. Nothing is read before rows are asked for, and each way of asking reads once.

    Iterating, and `batches`, gives structured arrays of 1 or more rows, of `dtype`, one after the other: any
    number of rows in bounded memory. `numpy`, `to_arrow`, `to_polars` and `to_pandas` collect all rows.
    It also exports itself as an Arrow stream (`pl.DataFrame(table)`, `duckdb.from_arrow(table)`, …).

    Prices: integers at the session's scale ("fixed", the scale is in the Arrow field's metadata), dollars
    as "float" (NaN: there is none), or "decimal" (Arrow forms only). Times: in Arrow forms UTC timestamps if
    the session's date is known and `time` is "utc", else integers, nanoseconds since midnight if the date is
    not known; in numpy always integers.
    """

    def __init__(
        self, wanted: Wanted, dtype: np.dtype[Any], session: Session, rows: Callable[[], Iterator[Table]]
    ) -> None:
        self.wanted, self._session, self._rows = wanted, session, rows
        self.dtype = columns.float_dtype(dtype) if wanted.price == "float" else dtype
        self._fixed = dtype
        self._len: int | None = None

    def batches(self) -> Iterator[Table]:
        """Structured arrays of `dtype`, each of at least one row, in the order of the table."""
        if self.wanted.price == "decimal":
            raise UsageError("numpy has no decimals", hint='take price="fixed" or "float", or an Arrow form')
        for rows in self._counted():
            yield columns.to_float(rows, self._session) if self.wanted.price == "float" else rows

    def __iter__(self) -> Iterator[Table]:
        return self.batches()

    def __len__(self) -> int:
        """How many rows; makes the table once if nothing has yet."""
        if self._len is None:
            for _ in self._counted():
                pass
        return self._len or 0

    def __bool__(self) -> bool:
        return True

    @property
    def columns(self) -> tuple[str, ...]:
        return self.dtype.names or ()

    def numpy(self) -> Table:
        """All rows as one structured array of `dtype`."""
        made = list(self.batches())
        return joined(made) if made else np.zeros(0, self.dtype)

    def head(self, n: int = 10) -> Table:
        """The first n rows."""
        made: list[Table] = []
        for rows in self.batches():
            made.append(rows[: n - sum(map(len, made))])
            if sum(map(len, made)) >= n:
                break
        return joined(made) if made else np.zeros(0, self.dtype)

    def reader(self) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow record batches, made as they are taken. Needs pyarrow."""
        need("pyarrow", "trident-core[arrow]")
        return columns.reader(
            self._counted(), self._fixed, self._session, self.wanted.price, self.wanted.time
        )

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table, with the symbol's name beside `locate`. Needs pyarrow."""
        return self.reader().read_all()

    def to_polars(self) -> pl.DataFrame:
        """All rows as a polars DataFrame; no copy beyond that of `to_arrow`. Needs polars and pyarrow."""
        polars = need("polars", "polars")
        frame: pl.DataFrame = polars.from_arrow(self.to_arrow())
        return frame

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame. Needs pandas and pyarrow."""
        need("pandas", "pandas")
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.reader().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        rows = "" if self._len is None else f", {self._len:,} rows"
        return f"<table {self.wanted.text()}{rows}>"

    def _counted(self) -> Iterator[Table]:
        total = 0
        for rows in self._rows():
            total += len(rows)
            yield rows
        self._len = total


def need(module: str, package: str) -> Any:
    """Import an optional package. Raises PluginError with what to install."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise PluginError(
            f"this needs {module}, which cannot be imported: {error}", hint=f"pip install '{package}'"
        ) from error
