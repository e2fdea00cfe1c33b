"""Tables of any origin as columns, and conditions on them as whole columns at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import UsageError
from trident_query.where.reference import occurs
from trident_query.where.tree import (
    Between,
    Binary,
    Call,
    Column,
    In,
    IsNull,
    Literal,
    Matches,
    Node,
    Unary,
    Unit,
)  # fmt: skip

#: Integers beyond this are judged row by row, with Python's numbers.
_SAFE: Final = 1 << 52

_COMPARE: Final = {
    "=": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal,
    ">": np.greater, ">=": np.greater_equal,
}  # fmt: skip


class NotColumnarError(Exception):
    """A condition that has to be asked row by row."""


class Rows(Sequence[Mapping[str, Any]]):
    """Rows of a table in some order, each a mapping of plain values; made when asked for."""

    def __init__(
        self, columns: Mapping[str, NDArray[Any]], valid: Mapping[str, NDArray[np.bool_]], order: NDArray[Any]
    ):
        self.columns, self.valid, self.order = columns, valid, order

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Rows(self.columns, self.valid, self.order[index])
        at = self.order[index]
        return {
            name: plain(column[at]) if name not in self.valid or self.valid[name][at] else None
            for name, column in self.columns.items()
        }

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return (self[index] for index in range(len(self)))


def plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def columns_of(table: Any) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[np.bool_]]]:
    """Columns and, where they have nulls, which values are there.

    `table`: a mapping of arrays or lists of one length, a sequence of mappings, a structured array, or
    anything with `to_pydict` and `column_names` (an Arrow table). Raises UsageError for anything else.
    """
    if hasattr(table, "column_names") and hasattr(table, "column"):
        raw: dict[str, Any] = {name: _arrow(table.column(name)) for name in table.column_names}
    elif isinstance(table, Mapping):
        raw = dict(table)
    elif isinstance(table, np.ndarray) and table.dtype.names:
        raw = {name: table[name] for name in table.dtype.names}
    elif isinstance(table, Sequence):
        names = list(table[0]) if table else []
        raw = {name: [row[name] for row in table] for name in names}
    else:
        raise UsageError(f"{type(table).__name__} is no table", hint="an Arrow table or a dict of columns")
    columns, valid = {}, {}
    for name, values in raw.items():
        columns[name], there = _column(values)
        if not there.all():
            valid[name] = there
    if len({len(column) for column in columns.values()}) > 1:
        raise UsageError("columns of different lengths")
    return columns, valid


def _arrow(column: Any) -> Any:
    """Numbers without nulls as an array, anything else as a list."""
    if column.null_count == 0 and str(column.type) in ("int8", "int16", "int32", "int64", "uint8", "uint16",
                                                       "uint32", "uint64", "float", "double"):  # fmt: skip
        return column.to_numpy()
    return column.to_pylist()


def _column(values: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufUS":
        return values, np.ones(len(values), np.bool_)
    items = list(values)
    there = np.array([item is not None for item in items], np.bool_)
    kinds = {type(item) for item in items if item is not None}
    if kinds <= {int} and all(abs(item) < 1 << 63 for item in items if item is not None):
        return np.array([0 if item is None else item for item in items], np.int64), there
    if kinds and kinds <= {bool}:
        return np.array([bool(item) for item in items], np.bool_), there
    if kinds and kinds <= {int, float}:
        return np.array([0.0 if item is None else float(item) for item in items], np.float64), there
    if kinds and kinds <= {str}:
        return np.array(["" if item is None else item for item in items], dtype=np.str_), there
    made = np.empty(len(items), object)
    made[:] = items
    return made, there


Cells = tuple[Any, Any]  # values and where they are there, each an array or a scalar


class Columnar:
    """Conditions on rows in partition order. `starts`: for each row its partition's first row; `stops`: the
    row behind its partition's last."""

    def __init__(self, rows: Rows, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> None:
        self.rows, self.starts, self.stops = rows, starts, stops
        self.n = len(rows)

    def condition(self, tree: Node) -> NDArray[np.bool_]:
        """bool[n]: where it is true. Raises NotColumnarError."""
        values, there = self.cells(tree)
        if np.asarray(values).dtype != np.bool_:
            raise NotColumnarError
        return np.broadcast_to(values & there, self.n).copy()

    def cells(self, node: Node) -> Cells:
        if isinstance(node, Literal):
            if isinstance(node.value, Fraction):
                raise NotColumnarError
            return (0, False) if node.value is None else (np.asarray(node.value), np.True_)
        if isinstance(node, Column):
            return self._column(node.name)
        if isinstance(node, Call):
            return self._moved(node)
        if isinstance(node, Unary):
            values, there = self.cells(node.item)
            return (~_truth(values) if node.sign == "not" else -_number(values)), there
        if isinstance(node, IsNull):
            return ~np.asarray(self.cells(node.item)[1]), np.True_
        if isinstance(node, Binary):
            return self._binary(node.sign, self.cells(node.left), self.cells(node.right))
        item = self.cells(node.item)
        if isinstance(node, In):
            made = [self._binary("=", item, self.cells(option)) for option in node.options]
            return _join("or", made)
        if isinstance(node, Between):
            return _join("and", [self._binary(">=", item, self.cells(node.low)),
                                 self._binary("<=", item, self.cells(node.high))])  # fmt: skip
        assert isinstance(node, Matches)
        return self._matches(node, item)

    def _matches(self, node: Matches, item: Cells) -> Cells:
        values = np.asarray(item[0])
        if values.dtype.kind != "U":
            raise NotColumnarError
        distinct, inverse = np.unique(values, return_inverse=True)
        answers = np.array([occurs(node.pattern, str(text)) for text in distinct], np.bool_)
        return answers[inverse], item[1]

    def _column(self, name: str) -> Cells:
        if name not in self.rows.columns:
            raise UsageError(
                f"no column {name!r}", hint=f"there are {', '.join(list(self.rows.columns)[:20])}"
            )
        column = self.rows.columns[name]
        if column.dtype.kind == "O" or (
            column.dtype.kind in "iu" and column.dtype.itemsize == 8 and _wide(column)
        ):
            raise NotColumnarError
        there = self.rows.valid[name][self.rows.order] if name in self.rows.valid else np.True_
        values = column[self.rows.order]
        return values.astype(np.int64) if values.dtype.kind in "iu" else values, there

    def _moved(self, call: Call) -> Cells:
        """prev and next of a value."""
        offset = call.arguments[1] if len(call.arguments) == 2 else Literal(1, Unit.NUMBER)
        if (
            call.name not in ("prev", "next")
            or not isinstance(offset, Literal)
            or not isinstance(offset.value, int)
        ):
            raise NotColumnarError
        values, there = self.cells(call.arguments[0])
        step = -offset.value if call.name == "prev" else offset.value
        at = np.arange(self.n) + step
        inside = (at >= self.starts) & (at < self.stops)
        at = np.where(inside, at, 0)
        values = np.broadcast_to(values, self.n)[at]
        return values, np.broadcast_to(there, self.n)[at] & inside

    def _binary(self, sign: str, left: Cells, right: Cells) -> Cells:
        if sign in ("and", "or"):
            return _join(sign, [left, right])
        there = np.asarray(left[1]) & np.asarray(right[1])
        a, b = np.asarray(left[0]), np.asarray(right[0])
        if sign in _COMPARE:
            if (a.dtype.kind == "U") != (b.dtype.kind == "U"):
                raise NotColumnarError
            return _COMPARE[sign](a, b), there
        if sign not in ("+", "-", "*"):
            raise NotColumnarError
        a, b = _number(a), _number(b)
        made = {"+": np.add, "-": np.subtract, "*": np.multiply}[sign](a, b)
        if made.dtype.kind != "f" and made.size and np.abs(made.astype(np.float64)).max() > _SAFE:
            raise NotColumnarError
        return made, there


def _wide(column: NDArray[Any]) -> bool:
    return bool(len(column)) and (int(column.max()) > _SAFE or int(column.min()) < -_SAFE)


def _number(values: Any) -> Any:
    values = np.asarray(values)
    if values.dtype.kind not in "iuf":
        raise NotColumnarError
    return values


def _truth(values: Any) -> Any:
    values = np.asarray(values)
    if values.dtype != np.bool_:
        raise NotColumnarError
    return values


def _join(sign: str, items: list[Cells]) -> Cells:
    """`and`, `or` with three values: decided where one side decides, else unknown where one is."""
    values, there = _truth(items[0][0]), np.asarray(items[0][1])
    for cells in items[1:]:
        other, known = _truth(cells[0]), np.asarray(cells[1])
        decisive = sign == "or"
        decided = (there & (values == decisive)) | (known & (other == decisive))
        values = np.where(decided, decisive, not decisive)
        there = decided | (there & known)
    return values, there
