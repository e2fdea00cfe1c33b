"""Pushdown: what a predicate demands of seq, time, locate and type, for the scan of a store to skip by.

The bounds are never narrower than the predicate; the predicate is still asked of every event that is left.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trident_core.session import Session
from trident_query.where.fields import FIELDS
from trident_query.where.reference import Value, evaluate, text_of
from trident_query.where.tree import (
    Between,
    Binary,
    Call,
    Column,
    In,
    IsNull,
    Node,
    Unary,
    walk,
)  # fmt: skip

_ALL_TYPES: Final = frozenset(range(256))
_OPEN: Final = (0, (1 << 64) - 1)
_NEGATED: Final = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_MIRRORED: Final = {"=": "=", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Bounds:
    """Closed ranges of seq and ts, type bytes, locates (None: all)."""

    seq: tuple[int, int] = _OPEN
    ts: tuple[int, int] = _OPEN
    types: frozenset[int] = _ALL_TYPES
    locates: frozenset[int] | None = None

    def both(self, other: Bounds) -> Bounds:
        if self.locates is None or other.locates is None:
            locates = other.locates if self.locates is None else self.locates
        else:
            locates = self.locates & other.locates
        return Bounds(_meet(self.seq, other.seq), _meet(self.ts, other.ts), self.types & other.types, locates)

    def either(self, other: Bounds) -> Bounds:
        if self.impossible or other.impossible:
            return other if self.impossible else self
        some = self.locates is None or other.locates is None
        locates = None if some else (self.locates or frozenset()) | (other.locates or frozenset())
        return Bounds(_hull(self.seq, other.seq), _hull(self.ts, other.ts), self.types | other.types, locates)

    @property
    def impossible(self) -> bool:
        """No event can satisfy them."""
        empty = self.seq[0] > self.seq[1] or self.ts[0] > self.ts[1]
        return empty or not self.types or (self.locates is not None and not self.locates)

    def scan_types(self) -> bytes | None:
        """As `Snapshot.scan` takes them."""
        return None if self.types == _ALL_TYPES else bytes(sorted(self.types))

    def scan_locates(self) -> NDArray[np.uint32] | None:
        return None if self.locates is None else np.array(sorted(self.locates), np.uint32)


def _meet(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return max(a[0], b[0]), min(a[1], b[1])


def _hull(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    return min(a[0], b[0]), max(a[1], b[1])


def bounds(node: Node, session: Session, wanted: bool = True) -> Bounds:
    """What must hold where a predicate is true (or, if not wanted, false)."""
    if isinstance(node, Unary) and node.sign == "not":
        return bounds(node.item, session, not wanted)
    if isinstance(node, Binary) and node.sign in ("and", "or"):
        left, right = bounds(node.left, session, wanted), bounds(node.right, session, wanted)
        return left.both(right) if (node.sign == "and") is wanted else left.either(right)
    columns = {leaf.name for leaf in walk(node) if isinstance(leaf, Column)}
    if not columns or any(isinstance(leaf, Call) for leaf in walk(node)):
        return _constant(node, wanted) if not columns else Bounds()
    made = Bounds()
    if not isinstance(node, IsNull):
        for name in _demanded(node, wanted):
            types = FIELDS[name].types
            made = made if types is None else made.both(Bounds(types=frozenset(types)))
    if columns == {"type"}:
        return made.both(
            Bounds(types=frozenset(v for v in range(256) if _of(node, text_of(bytes([v]))) is wanted))
        )
    if columns == {"symbol"} and not isinstance(node, IsNull):
        known = [each for each in session.directory if each.symbol]
        return made.both(Bounds(locates=frozenset(e.locate for e in known if _of(node, e.symbol) is wanted)))
    return made.both(_ranges(node, wanted))


def _demanded(node: Node, wanted: bool) -> set[str]:
    """The columns that must not be null where a test is true (or false). One option of `in`, or one end of
    `between`, may decide without the others."""
    if (isinstance(node, In) and wanted) or (isinstance(node, Between) and not wanted):
        node = node.item
    return {leaf.name for leaf in walk(node) if isinstance(leaf, Column)}


def _of(node: Node, value: Value) -> Value:
    return evaluate(node, lambda leaf: value)


def _constant(node: Node, wanted: bool) -> Bounds:
    possible = evaluate(node, lambda leaf: None) is wanted
    return Bounds() if possible else Bounds(types=frozenset())


def _ranges(node: Node, wanted: bool) -> Bounds:
    """Of a test of seq, ts or locate with constants."""
    if isinstance(node, Between) and isinstance(node.item, Column) and wanted:
        return _range(node.item, ">=", node.low).both(_range(node.item, "<=", node.high))
    if isinstance(node, In) and isinstance(node.item, Column) and wanted:
        made = [_range(node.item, "=", option) for option in node.options]
        whole = made[0]
        for each in made[1:]:
            whole = whole.either(each)
        return whole
    if isinstance(node, Binary) and node.sign in _NEGATED:
        sign = node.sign if wanted else _NEGATED[node.sign]
        if isinstance(node.left, Column):
            return _range(node.left, sign, node.right)
        if isinstance(node.right, Column):
            return _range(node.right, _MIRRORED[sign], node.left)
    return Bounds()


def _range(column: Column, sign: str, other: Node) -> Bounds:
    if sign == "!=" or any(isinstance(leaf, (Column, Call)) for leaf in walk(other)):
        return Bounds()
    value = evaluate(other, lambda leaf: None)
    if value is None or isinstance(value, str):
        return Bounds()
    limits = _LIMITS[sign](Fraction(value))
    name = FIELDS[column.name].column if column.name != "symbol" else ""
    if name == "seq":
        return Bounds(seq=_meet(limits, _OPEN))
    if name == "ts":
        return Bounds(ts=_meet(limits, _OPEN))
    if name == "locate" and sign == "=":
        return Bounds(locates=frozenset((limits[0],)) if 0 <= limits[0] == limits[1] else frozenset())
    return Bounds()


_LIMITS: Final[dict[str, Callable[[Fraction], tuple[int, int]]]] = {
    "=": lambda v: (math.ceil(v), math.floor(v)),
    "<": lambda v: (0, math.ceil(v) - 1),
    "<=": lambda v: (0, math.floor(v)),
    ">": lambda v: (math.floor(v) + 1, _OPEN[1]),
    ">=": lambda v: (math.ceil(v), _OPEN[1]),
}


def describe(found: Bounds, symbols: int) -> dict[str, str]:
    """The bounds in words, for `--explain`; only what bounds."""
    told: dict[str, str] = {}
    for name, limits in (("seq", found.seq), ("ts", found.ts)):
        if limits != _OPEN:
            told[name] = f"{limits[0]} to {limits[1]}"
    if found.types != _ALL_TYPES:
        few = found.types if len(found.types) <= 128 else _ALL_TYPES - found.types
        letters = "".join(sorted(text_of(bytes([value])) for value in few))
        told["types"] = letters if few is found.types else f"all but {letters}"
    if found.locates is not None:
        told["locates"] = f"{len(found.locates)} of {symbols}"
    return told
