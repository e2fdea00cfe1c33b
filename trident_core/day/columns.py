"""Rows in other forms: prices as floats, and Arrow record batches, with the columns of `trident convert`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trident_core.session import Session
from trident_core.tables.catalog import Column, column_of, count_of
from trident_core.tables.common import Table

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of a record batch.
ROWS: Final = 1 << 16

_PRICES: Final = (Column.PRICE, Column.PRICE8)


def float_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The same row with f64 for every price."""
    return np.dtype(
        [
            (name, "<f8" if column_of(name, dtype[name]) in _PRICES else dtype[name])
            for name in dtype.names or ()
        ]
    )


def to_float(rows: Table, session: Session) -> Table:
    """Rows with prices in currency; NaN where there is none, as in `trident convert --price float`."""
    made = np.zeros(len(rows), float_dtype(rows.dtype))
    for name in rows.dtype.names or ():
        kind = column_of(name, rows.dtype[name])
        made[name] = rows[name]
        if kind in _PRICES:
            made[name] /= 10.0 ** (8 if kind is Column.PRICE8 else session.price_decimals)
            if count := count_of(name):
                made[name][rows[count] == 0] = np.nan
            elif name.endswith("_px"):
                made[name][rows[name] == 0] = np.nan
            elif name == "price" and "voided" in (rows.dtype.names or ()):
                made[name][rows["kind"] == b"B"] = np.nan
    return made


def gathered(batches: Iterator[Table]) -> Iterator[list[Table]]:
    """Tables in lists of ROWS rows or a little more, but for the last."""
    parts: list[Table] = []
    size = 0
    for rows in batches:
        parts.append(rows)
        size += len(rows)
        if size >= ROWS:
            yield parts
            parts, size = [], 0
    if parts:
        yield parts


def reader(
    batches: Iterator[Table], dtype: np.dtype[Any], session: Session, price: str, time: str
) -> pa.RecordBatchReader:
    """Record batches of rows of `dtype`, made as they are taken. Times are integers if no date is known."""
    import pyarrow as pa

    from trident_core.export.columns import Layout, Prices, SymbolCodes

    layout, symbols = Layout(dtype, Prices(price), session.price_decimals), SymbolCodes(session)
    schema = layout.schema
    if integers := time == "ns" or session.date is None:
        schema = pa.schema(
            [f.with_type(pa.int64()) if pa.types.is_timestamp(f.type) else f for f in layout.schema]
        )

    def made() -> Iterator[pa.RecordBatch]:
        for rows in gathered(batches):
            batch = layout.batch(rows, symbols.current())
            yield batch.cast(schema) if integers else batch

    return pa.RecordBatchReader.from_batches(schema, made())
