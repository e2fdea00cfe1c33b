"""Expressions of a `sqlglot` tree as trees of our own; what has no counterpart is refused by its name."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from trident_core.errors import PatternError, UsageError
from trident_query.sequence.measures import FUNCTIONS
from trident_query.where.reference import evaluate
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

_SIGNS = {
    "And": "and", "Or": "or", "EQ": "=", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">=",
    "Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%", "DPipe": "||",
}  # fmt: skip
#: Classes of sqlglot whose names are not those of the functions.
_FUNCTIONS = {
    "First": "first", "Last": "last", "FirstValue": "first", "LastValue": "last", "Count": "count",
    "Sum": "sum", "Avg": "avg", "Min": "min", "Max": "max", "ArrayAgg": "array_agg", "AnyValue": "arbitrary",
    "Abs": "abs", "ArgMax": "max_by", "ArgMin": "min_by",
    "Lower": "lower", "Upper": "upper", "Coalesce": "coalesce",
}  # fmt: skip


def sqlglot_modules() -> tuple[Any, Any]:
    """`sqlglot` and `sqlglot.exp`. Raises UsageError where the extra is not installed."""
    try:
        import sqlglot
        from sqlglot import exp
    except ModuleNotFoundError:
        raise UsageError("SQL needs sqlglot", hint="pip install 'trident-core[sql]'") from None
    return sqlglot, exp


def refusal(text: str, construct: str, message: str) -> PatternError:
    """An error at the first place where a construct stands in the text."""
    at = max(text.lower().find(construct.lower()), 0)
    return PatternError(message, pattern=text, position=len(text[:at].encode("utf-8", "replace")))


class Translator:
    """`output`: of the SELECT list, where names are output columns and a table's alias says nothing."""

    def __init__(self, text: str, unions: frozenset[str], *, output: bool = False) -> None:
        self.text, self.unions, self.output = text, unions, output

    def constant(self, node: Any) -> Any:
        """The value of an expression without columns."""

        def nothing(leaf: Any) -> Any:
            raise refusal(self.text, leaf.name, f"{leaf.name} is no constant")

        return evaluate(self.node(node), nothing)

    def node(self, node: Any) -> Node:
        kind = type(node).__name__
        if kind in ("Paren", "Alias", "Cast", "TryCast"):
            return self.node(node.this)
        if kind in _SIGNS:
            return Binary(_SIGNS[kind], self.node(node.this), self.node(node.expression))
        if kind in ("Not", "Neg"):
            return Unary("not" if kind == "Not" else "-", self.node(node.this))
        if kind in ("Literal", "Boolean", "Null"):
            return _literal(node, kind)
        if kind == "Column":
            return self._column(node)
        if kind == "In":
            return self._in(node)
        if kind == "Between":
            return Between(self.node(node.this), self.node(node.args["low"]), self.node(node.args["high"]))
        if kind == "Is" and type(node.expression).__name__ == "Null":
            return IsNull(self.node(node.this))
        if kind == "RegexpLike":
            return Matches(self.node(node.this), str(node.expression.this))
        if kind == "Subquery" or kind == "Exists":
            return self._subquery(node)
        return self._call(node, kind)

    def _column(self, node: Any) -> Column:
        name = _folded(node.this, upper=False)
        table = node.args.get("table")
        if table is None or self.output:
            return Column(name)
        return Column(name, _folded(table, upper=True))

    def _in(self, node: Any) -> Node:
        query = node.args.get("query")
        if query is not None:
            return In(self.node(node.this), (Literal(*_typed(self._scalar(query))),))
        return In(self.node(node.this), tuple(self.node(option) for option in node.expressions))

    def _subquery(self, node: Any) -> Node:
        if type(node).__name__ == "Exists":
            self._scalar(node.this)
            return Literal(True, Unit.TRUTH)
        return Literal(*_typed(self._scalar(node)))

    def _scalar(self, query: Any) -> Any:
        """The value of `SELECT constant`; any other query inside is refused."""
        select = query.this if type(query).__name__ == "Subquery" else query
        if (
            type(select).__name__ == "Select"
            and len(select.expressions) == 1
            and not (select.args.get("from_") or select.args.get("from") or select.args.get("where"))
        ):
            return self.constant(select.expressions[0])
        raise refusal(self.text, "SELECT", "a subquery that is no constant")

    def _call(self, node: Any, kind: str) -> Node:
        name = _FUNCTIONS.get(kind) or (str(node.this).lower() if kind == "Anonymous" else kind.lower())
        frame = ""
        for word in ("running", "final"):
            if name.startswith(f"trident_{word}_"):
                frame, name = word, name.removeprefix(f"trident_{word}_")
        if name not in FUNCTIONS:
            raise refusal(self.text, name, f"the function {name} is not read")
        arguments = _arguments(node, kind)
        if name == "classifier" and arguments:
            return Call(name, (Column(_folded(arguments[0].this, upper=True)),), frame)
        if len(arguments) == 1 and type(arguments[0]).__name__ == "Star":
            return Call(name, star=True, frame=frame)
        if (
            len(arguments) == 1
            and type(arguments[0]).__name__ == "Column"
            and type(arguments[0].this).__name__ == "Star"
        ):
            return Call(
                name, star=True, variable=_folded(arguments[0].args["table"], upper=True), frame=frame
            )
        return Call(name, tuple(self.node(argument) for argument in arguments), frame)


def _arguments(node: Any, kind: str) -> list[Any]:
    if kind == "Anonymous":
        return list(node.expressions)
    found = [node.this] if node.this is not None else []
    for part in ("expression", "expressions"):
        value = node.args.get(part)
        found += value if isinstance(value, list) else [value] if value is not None else []
    return found


def _folded(identifier: Any, *, upper: bool) -> str:
    if identifier.args.get("quoted"):
        return str(identifier.this)
    return str(identifier.this).upper() if upper else str(identifier.this).lower()


def _literal(node: Any, kind: str) -> Literal:
    if kind == "Null":
        return Literal(None, Unit.NULL)
    if kind == "Boolean":
        return Literal(bool(node.this), Unit.TRUTH)
    if node.is_string:
        return Literal(str(node.this), Unit.TEXT)
    return Literal(
        *_typed(
            Fraction(str(node.this))
            if "." in str(node.this) or "e" in str(node.this).lower()
            else int(node.this)
        )
    )


def _typed(value: Any) -> tuple[Any, Unit]:
    if value is None:
        return None, Unit.NULL
    if isinstance(value, bool):
        return value, Unit.TRUTH
    return value, Unit.TEXT if isinstance(value, str) else Unit.NUMBER
