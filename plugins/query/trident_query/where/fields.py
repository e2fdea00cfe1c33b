"""The fields of events that expressions name, and the check of types.

A field is null where its event has none: a price where the type has no price, an MPID but for F and L, a
symbol where the directory has none. A comparison with null is neither true nor false, as in SQL: `not` leaves
it so, and an event is taken only where the whole is true.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import PatternError
from trident_core.event_types import ATTRIBUTED, PRICED, SHARED
from trident_query.parse import parse
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
    show,
)  # fmt: skip

#: Greatest price of a literal: 8 decimals of it fit 63 bits.
PRICE_MAX: Final = 90_000_000_000


class Kind(StrEnum):
    """Kinds of values."""

    NUMBER = "number"
    PRICE = "price"
    TIME = "time"
    DURATION = "duration"
    LETTER = "letter"
    TEXT = "text"
    TRUTH = "truth value"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Field:
    """`column` of EVENT that holds it; it is null in events of other than these `types`."""

    column: str
    kind: Kind
    help: str
    types: bytes | None = None

    def there(self, types: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Of events of these types, which have it?"""
        return np.ones(len(types), np.bool_) if self.types is None else np.isin(types, list(self.types))


FIELDS: Final[dict[str, Field]] = {
    "seq": Field("seq", Kind.NUMBER, "sequence number"),
    "ts": Field("ts", Kind.TIME, "time of day: ts >= 09:30, ts - prev(ts) <= 5ms"),
    "type": Field("type", Kind.LETTER, "the message's letter"),
    "side": Field("side", Kind.LETTER, "B or S"),
    "symbol": Field("locate", Kind.TEXT, "by the session's directory"),
    "locate": Field("locate", Kind.NUMBER, "the symbol's number"),
    "price": Field("price", Kind.PRICE, "in dollars, an exact decimal: price < 100.25", PRICED),
    "qty": Field("qty", Kind.NUMBER, "shares", SHARED),
    "shares": Field("qty", Kind.NUMBER, "the same", SHARED),
    "ref": Field("ref", Kind.NUMBER, "order reference"),
    "ref2": Field("ref2", Kind.NUMBER, "new reference of U, match number of E, C, P, Q, B"),
    "mpid": Field("aux", Kind.TEXT, "attribution of F, participant of L", ATTRIBUTED),
    "aux": Field("aux", Kind.TEXT, "the eight bytes that depend on the type"),
    "flags": Field("flags", Kind.NUMBER, "1 not printable, 2 price with 8 decimals"),
}

_UNITS: Final = {
    Unit.NUMBER: Kind.NUMBER, Unit.TIME: Kind.TIME, Unit.DURATION: Kind.DURATION, Unit.TEXT: Kind.TEXT,
    Unit.TRUTH: Kind.TRUTH, Unit.NULL: Kind.NULL,
}  # fmt: skip
_NUMERIC: Final = frozenset({Kind.NUMBER, Kind.PRICE, Kind.TIME, Kind.DURATION})
_SPANS: Final = frozenset({Kind.NUMBER, Kind.TIME, Kind.DURATION})
_TEXTS: Final = frozenset({Kind.TEXT, Kind.LETTER})


class Checker:
    """Kinds of the nodes of one expression; raises PatternError where they do not fit."""

    def __init__(self, text: str, *, prev: bool = False) -> None:
        self.text = text
        self.prev = prev

    def error(self, node: Node, message: str, hint: str = "") -> PatternError:
        return PatternError(message, pattern=self.text, position=node.at, hint=hint)

    def condition(self, node: Node) -> None:
        """Must be true or false."""
        kind = self.kind(node)
        if kind not in (Kind.TRUTH, Kind.NULL):
            raise self.error(node, f"a {kind} is no condition", "compare it with something")

    def kind(self, node: Node) -> Kind:
        if isinstance(node, Literal):
            return _UNITS[node.unit]
        if isinstance(node, Column):
            return self._field(node)
        if isinstance(node, Unary):
            return self._unary(node)
        if isinstance(node, Binary):
            return self._binary(node)
        if isinstance(node, (In, Between)):
            options = node.options if isinstance(node, In) else (node.low, node.high)
            for option in options:
                self._comparable(node.item, option, "=" if isinstance(node, In) else "<", node)
            return Kind.TRUTH
        if isinstance(node, Matches):
            kind = self.kind(node.item)
            if kind not in _TEXTS:
                raise self.error(
                    node, f"a pattern runs on texts, not on a {kind}", "symbol, mpid, aux, type or side"
                )
            parse(node.pattern)  # refuses what the dialect refuses, at its place in the pattern
            return Kind.TRUTH
        if isinstance(node, IsNull):
            self.kind(node.item)
            return Kind.TRUTH
        return self._call(node)

    def _field(self, node: Column) -> Kind:
        if node.variable is not None:
            raise self.error(node, f"{node.variable}.{node.name} names the rows of a pattern variable",
                             "only measures and DEFINE with --allow-backtracking do")  # fmt: skip
        field = FIELDS.get(node.name)
        if field is None:
            hint = f"fields are {', '.join(FIELDS)}"
            if len(node.name) <= 4:
                hint = f"a text stands in single quotes: '{node.name}'; {hint}"
            raise self.error(node, f"no field {node.name!r}", hint)
        return field.kind

    def _call(self, node: Call) -> Kind:
        if node.name == "prev" and self.prev:
            if len(node.arguments) != 1 or node.star or node.frame:
                raise self.error(node, "prev takes one value of the row before", "prev(price)")
            kind = self.kind(node.arguments[0])
            if kind is Kind.TRUTH:
                raise self.error(node, "prev takes a value, not a condition", "prev(price) > 1")
            return kind
        hint = "prev(…) stands in --define" if node.name == "prev" else "prev is the only one, in --define"
        raise self.error(node, f"no function {node.name!r} here", hint)

    def _unary(self, node: Unary) -> Kind:
        if node.sign == "not":
            self.condition(node.item)
            return Kind.TRUTH
        kind = self.kind(node.item)
        if kind not in _NUMERIC:
            raise self.error(node, f"a {kind} has no negative")
        return kind

    def _binary(self, node: Binary) -> Kind:
        if node.sign in ("and", "or"):
            self.condition(node.left)
            self.condition(node.right)
            return Kind.TRUTH
        if node.sign in ("=", "!=", "<", "<=", ">", ">="):
            self._comparable(node.left, node.right, node.sign, node)
            return Kind.TRUTH
        if node.sign in ("/", "||"):
            raise self.error(
                node, f"no {node.sign} here", "multiply the other side instead" if node.sign == "/" else ""
            )
        left, right = self.kind(node.left), self.kind(node.right)
        if left not in _NUMERIC or right not in _NUMERIC:
            raise self.error(node, f"no {node.sign} of a {left} and a {right}")
        if Kind.PRICE in (left, right) and not {left, right} <= {Kind.PRICE, Kind.NUMBER}:
            raise self.error(node, f"no {node.sign} of a {left} and a {right}")
        if node.sign == "%" and Kind.PRICE in (left, right) and left is not right and left is not Kind.PRICE:
            raise self.error(node, "no remainder of a number by a price")
        if Kind.PRICE in (left, right):
            return Kind.PRICE
        if {left, right} == {Kind.NUMBER}:
            return Kind.NUMBER
        return Kind.DURATION if left is right or node.sign in "*%" else Kind.TIME

    def _comparable(self, left: Node, right: Node, sign: str, at: Node) -> None:
        kinds = self.kind(left), self.kind(right)
        if Kind.NULL in kinds:
            raise self.error(at, "nothing equals null", "write is null")
        if set(kinds) <= _SPANS or set(kinds) <= {Kind.PRICE, Kind.NUMBER}:
            for node, other in ((left, kinds[1]), (right, kinds[0])):
                self._price(node, other)
            return
        if set(kinds) <= _TEXTS:
            if sign not in ("=", "!="):
                raise self.error(at, f"texts have no order here: {sign}", "use =, in or ~")
            for node, other in ((left, kinds[1]), (right, kinds[0])):
                self._letter(node, other)
            return
        raise self.error(at, f"a {kinds[0]} cannot be compared with a {kinds[1]}", _advice(kinds, right))

    def _letter(self, node: Node, other: Kind) -> None:
        if (
            other is Kind.LETTER
            and isinstance(node, Literal)
            and (len(str(node.value)) != 1 or ord(str(node.value)) > 127)
        ):
            raise self.error(node, f"{show(node.value)} is not one letter", "for several write in ('A', 'F')")

    def _price(self, node: Node, other: Kind) -> None:
        if other is Kind.PRICE and isinstance(node, Literal) and abs(Fraction(node.value or 0)) > PRICE_MAX:
            raise self.error(node, f"a price beyond {PRICE_MAX:,}, the cap on prices")


def _advice(kinds: tuple[Kind, Kind], right: Node) -> str:
    if Kind.TIME in kinds and Kind.TEXT in kinds:
        return "a time of day stands without quotes: ts >= 09:30"
    if Kind.TEXT in kinds or Kind.LETTER in kinds:
        shown = f": '{right.value}'" if isinstance(right, Literal) else ""
        return f"put the text into single quotes{shown}"
    return ""
