"""The reference of `--where`: each event on its own, in pure Python, with exact numbers. It is the law.

Truth has three values, as in SQL: True, False and None (unknown).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EventFlag, Events
from trident_core.session import Session
from trident_query.reference import ReferenceProgram
from trident_query.where.fields import FIELDS, Checker
from trident_query.where.parse import parse_expression
from trident_query.where.tree import (
    Between,
    Binary,
    Call,
    Column,
    In,
    IsNull,
    Literal,
    Node,
    Unary,
)  # fmt: skip

Value = Any  # int, Fraction, float, str, bool or None
#: What a column or a function is, in the row (or the match) at hand.
Lookup = Callable[[Column | Call], Value]

_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


def evaluate(node: Node, lookup: Lookup) -> Value:
    """The value of an expression; `lookup` tells what its columns and functions are."""
    if isinstance(node, Literal):
        return node.value
    if isinstance(node, (Column, Call)):
        return lookup(node)
    if isinstance(node, Binary) and node.sign in ("and", "or"):
        return _joined(node.sign, [evaluate(node.left, lookup), evaluate(node.right, lookup)])
    if isinstance(node, Binary):
        return apply(node.sign, evaluate(node.left, lookup), evaluate(node.right, lookup))
    if isinstance(node, IsNull):
        return evaluate(node.item, lookup) is None
    item = evaluate(node.item, lookup)
    if isinstance(node, Unary):
        if item is None:
            return None
        return not item if node.sign == "not" else -item
    if isinstance(node, In):
        return _joined("or", [apply("=", item, evaluate(option, lookup)) for option in node.options])
    if isinstance(node, Between):
        low, high = evaluate(node.low, lookup), evaluate(node.high, lookup)
        return _joined("and", [apply(">=", item, low), apply("<=", item, high)])
    return None if item is None else occurs(node.pattern, item)


def _joined(sign: str, truths: list[Value]) -> Value:
    """`and`: false if any is false, else unknown if any is unknown; `or`: the other way round."""
    decisive = sign == "or"
    if any(truth is not None and bool(truth) is decisive for truth in truths):
        return decisive
    return None if any(truth is None for truth in truths) else not decisive


def apply(sign: str, left: Value, right: Value) -> Value:
    """A comparison or an operation; null if either side is, or for a division by zero."""
    if left is None or right is None:
        return None
    if isinstance(left, float) != isinstance(right, float) and not isinstance(left, str):
        left, right = float(left), float(right)  # as SQL does; exact numbers meet exactly
    if sign in _COMPARE:
        return _COMPARE[sign](left, right)
    if sign == "||":
        return f"{left}{right}"
    if sign == "+":
        return left + right
    if sign == "-":
        return left - right
    if sign == "*":
        return left * right
    if right == 0:
        return None
    if sign == "%":  # the sign is the dividend's, as in SQL
        return left - right * int(Fraction(left) / Fraction(right))
    return (
        left / right
        if isinstance(left, float) or isinstance(right, float)
        else Fraction(left) / Fraction(right)
    )


@cache
def _program(pattern: str) -> ReferenceProgram:
    return ReferenceProgram(pattern, flags="", full=False, raw=False)


def occurs(pattern: str, text: str) -> bool:
    """Does a pattern of docs/dialect.md occur in a text?"""
    raw = text.encode("utf-8", "surrogateescape")
    return bool(_program(pattern).match(np.array([raw], dtype=f"S{max(len(raw), 1)}"))[0])


def text_of(raw: bytes) -> str:
    """Bytes of a field as text; bytes that are no UTF-8 survive the way back."""
    return raw.decode("utf-8", "surrogateescape")


def field_of(event: Any, name: str, session: Session) -> Value:
    """A field of one event as a plain value; None is null."""
    letter, types = int(event["type"]), FIELDS[name].types
    if types is not None and letter not in types:
        return None
    if name == "symbol":
        return session.directory.symbol(int(event["locate"])) or None
    if name == "type":
        return text_of(bytes([letter]))
    if name == "side":
        return text_of(bytes([event["side"]])) if event["side"] else None
    if name == "price":
        decimals = 8 if int(event["flags"]) & EventFlag.PRICE_8DP else session.price_decimals
        return Fraction(int(event["price"]), 10**decimals)
    if name == "aux":
        return text_of(event["aux"].tobytes().rstrip(b"\0 "))
    if name == "mpid":
        return text_of(event["aux"].tobytes()[:4].rstrip(b"\0 "))
    return int(event[FIELDS[name].column])


class ReferencePredicate:
    """A predicate over events. `text` is as it was given."""

    def __init__(self, text: str, session: Session) -> None:
        self.text, self.session = text, session
        self.tree = parse_expression(text)
        Checker(text).condition(self.tree)

    def match(self, events: Events) -> NDArray[np.bool_]:
        """bool[n]: for which events it is true."""
        return np.fromiter((self.holds(event) for event in events), np.bool_, len(events))

    def holds(self, event: Any) -> bool:
        def lookup(leaf: Column | Call) -> Value:
            return field_of(event, leaf.name, self.session)

        return evaluate(self.tree, lookup) is True
