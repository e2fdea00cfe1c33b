"""Structured rows to Arrow: timestamps, exact or float prices, symbols as a dictionary; copied once."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from trident_core.session import Session
from trident_core.tables.catalog import Column, column_of, count_of
from trident_core.tables.common import Table
from trident_core.tables.databento import UNDEF_PRICE

TIMESTAMP: Final = pa.timestamp("ns", tz="UTC")
DECIMAL_DIGITS: Final = 19
_LOCATES: Final = 1 << 16


class Prices(StrEnum):
    """How prices are written: `fixed` i64 mantissas, their scale in the metadata; `decimal` decimal128;
    `float` f64. An absent price is 0 (Databento names: UNDEF_PRICE), null, NaN."""

    FIXED = "fixed"
    DECIMAL = "decimal"
    FLOAT = "float"


class SymbolCodes:
    """The directory as an Arrow dictionary that only ever grows, so that every batch of a file can share it.

    `current` is a snapshot (codes by locate, -1: no symbol; the symbols) that another thread may use.
    """

    def __init__(self, session: Session) -> None:
        self._directory = session.directory
        self._version = -1
        self._code_of: dict[tuple[int, str], int] = {}
        self._snapshot: Symbols = (np.full(_LOCATES, -1, np.int32), {}, pa.array([], pa.string()))

    def current(self) -> Symbols:
        if self._version != self._directory.version:
            self._version = self._directory.version
            codes = np.full(_LOCATES, -1, np.int32)
            far: dict[int, int] = {}
            for instrument in self._directory:
                key = (instrument.locate, instrument.symbol)
                code = self._code_of.setdefault(key, len(self._code_of))
                if instrument.locate < _LOCATES:
                    codes[instrument.locate] = code
                else:
                    far[instrument.locate] = code
            names = pa.array([symbol for _, symbol in self._code_of], pa.string())
            self._snapshot = (codes, far, names)
        return self._snapshot


#: Codes of locates below 2^16, codes of the others, names by code.
Symbols = tuple[NDArray[np.int32], dict[int, int], Any]


class Layout:
    """The columns of one table in Arrow: `schema`, and `batch` to fill it.

    `decimals` is the scale of the mantissas in the rows. `undefined`: UNDEF_PRICE stands for no price.
    `symbol` False leaves the symbol out: the name of the partition has it.
    """

    def __init__(
        self,
        dtype: np.dtype[Any],
        prices: Prices,
        decimals: int,
        *,
        undefined: bool = False,
        symbol: bool = True,
    ) -> None:
        self._symbol = symbol
        self.dtype, self._prices, self._decimals, self._undefined = dtype, prices, decimals, undefined
        self._names: tuple[str, ...] = dtype.names or ()
        self._room: dict[str, NDArray[Any]] = {}
        self._kinds = {name: column_of(name, dtype[name]) for name in self._names}
        self.schema = self._schema()

    def repetitive(self) -> list[str]:
        """The columns worth a dictionary in Parquet: texts, symbols, sizes, counts and quoted prices."""
        texts = [f.name for f in self.schema if pa.types.is_dictionary(f.type) or pa.types.is_string(f.type)]
        numbers = [n for n in self._names if self._kinds[n] is Column.SYMBOL or _is_repetitive(n)]
        return texts + numbers

    def ordered(self) -> list[str]:
        """The columns by which a reader may skip row groups: times, sequence numbers, symbols."""
        return [
            name
            for name in self._names
            if self._kinds[name] in (Column.TIME, Column.SYMBOL) or name in ("seq", "sequence")
        ]

    def _schema(self) -> Any:
        fields = []
        for name in self._names:
            kind = self._kinds[name]
            if kind in (Column.PRICE, Column.PRICE8):
                fields.append(self._price_field(name, 8 if kind is Column.PRICE8 else self._decimals))
            elif kind is Column.TIME:
                fields.append(pa.field(name, TIMESTAMP))
            elif kind is Column.TEXT:
                fields.append(pa.field(name, pa.string()))
            else:
                fields.append(pa.field(name, pa.from_numpy_dtype(self.dtype[name])))
            if kind is Column.SYMBOL and self._symbol:
                fields.append(pa.field("symbol", pa.dictionary(pa.int32(), pa.string())))
        return pa.schema(fields)

    def _price_field(self, name: str, decimals: int) -> Any:
        if self._prices is Prices.FLOAT:
            return pa.field(name, pa.float64())
        if self.dtype[name].kind == "f":  # vwap: the one column that is no integer
            scale = decimals if self._prices is Prices.FIXED else 0
            return pa.field(name, pa.float64(), metadata={"scale": str(scale)})
        if self._prices is Prices.DECIMAL:
            return pa.field(name, pa.decimal128(DECIMAL_DIGITS, decimals))
        return pa.field(name, pa.from_numpy_dtype(self.dtype[name]), metadata={"scale": str(decimals)})

    def batch(self, parts: list[Table], symbols: Symbols, *, reuse: bool = False) -> Any:
        """A RecordBatch of `schema` with the rows of all `parts` (one or more), one after the other.

        `reuse`: it is valid until the next call, which uses its memory again.
        """
        columns = []
        for name in self._names:
            kind = self._kinds[name]
            values = self._column(parts, name) if reuse else _joined(parts, name)
            if kind is Column.TIME:
                columns.append(_times(values, optional=name != "ts_event"))
            elif kind is Column.TEXT:
                columns.append(_texts(values))
            elif kind in (Column.PRICE, Column.PRICE8):
                decimals = 8 if kind is Column.PRICE8 else self._decimals
                columns.append(self._price(values, decimals, self._absent(parts, name, values)))
            else:
                columns.append(pa.array(values))
            if kind is Column.SYMBOL and self._symbol:
                columns.append(_symbols(values, symbols))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _column(self, parts: list[Table], name: str) -> NDArray[Any]:
        """A column of all parts, in memory that the column's last batch had."""
        size = sum(map(len, parts))
        room = self._room.get(name)
        if room is None or len(room) < size:
            room = self._room[name] = np.empty(size, self.dtype[name])
        return np.concatenate([part[name] for part in parts], out=room[:size])

    def _absent(self, parts: list[Table], name: str, values: NDArray[Any]) -> NDArray[np.bool_] | None:
        """Which prices there are none of; None where that cannot be, or need not be known."""
        if self._prices is Prices.FIXED:
            return None
        if self._undefined:
            return np.asarray(values == UNDEF_PRICE)
        if count := count_of(name):
            return np.asarray(_joined(parts, count) == 0)
        if name.endswith("_px"):
            return np.asarray(values == 0)
        if name == "price" and "voided" in self._names:
            return np.asarray(_joined(parts, "kind") == b"B")
        return None

    def _price(self, values: NDArray[Any], decimals: int, absent: NDArray[np.bool_] | None) -> Any:
        if self._prices is Prices.FIXED:
            return pa.array(values)
        if self._prices is Prices.FLOAT or values.dtype.kind == "f":
            floats = values / 10.0**decimals
            if absent is not None:
                floats[absent] = np.nan
            return pa.array(floats)
        wide = np.zeros((len(values), 2), np.int64)
        wide[:, 0] = values.view(np.int64)
        if values.dtype.kind == "i":
            wide[:, 1] = wide[:, 0] >> 63
        validity = None if absent is None else pa.py_buffer(np.packbits(~absent, bitorder="little"))
        return pa.Array.from_buffers(
            pa.decimal128(DECIMAL_DIGITS, decimals), len(values), [validity, pa.py_buffer(wide)]
        )


def _is_repetitive(name: str) -> bool:
    return name == "price" or any(part in name for part in ("_px", "_sz", "_ct"))


def _joined(parts: list[Table], name: str) -> NDArray[Any]:
    return np.concatenate([part[name] for part in parts])


def _times(values: NDArray[np.int64], *, optional: bool) -> Any:
    if optional and not values.all():
        return pa.array(values, TIMESTAMP, mask=values == 0)
    return pa.Array.from_buffers(TIMESTAMP, len(values), [None, pa.py_buffer(values)])


def _texts(values: NDArray[np.bytes_]) -> Any:
    """Latin-1 text without padding as strings; letters without a detour."""
    width = values.dtype.itemsize
    codes = values.view(f"u{width}")
    if width == 1 and len(codes) and int(codes.min()) > 0 and int(codes.max()) < 128:
        offsets = np.arange(len(codes) + 1, dtype=np.int32)
        return pa.StringArray.from_buffers(len(codes), pa.py_buffer(offsets), pa.py_buffer(codes))
    distinct, index = np.unique(codes, return_inverse=True)
    names = [value.decode("latin-1").rstrip(" ") for value in distinct.view(f"S{width}").tolist()]
    indices = pa.array(index.astype(np.int32))
    return pa.DictionaryArray.from_arrays(indices, pa.array(names, pa.string())).dictionary_decode()


def _symbols(locates: NDArray[Any], symbols: Symbols) -> Any:
    near, far, names = symbols
    if len(locates) and int(locates.max()) >= len(near):
        codes = np.array([near[n] if n < len(near) else far.get(n, -1) for n in locates.tolist()], np.int32)
    else:
        codes = near[locates]
    unknown = codes < 0
    mask = unknown if unknown.any() else None
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=mask), names)
