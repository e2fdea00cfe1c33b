"""Syntax trees of expressions: predicates of `--where`, conditions of `--define`, measures.

Every node has `at`, the byte offset in the text where it (of an operator: its sign) stands, for errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any


class Unit(StrEnum):
    """What a literal is, beyond its value."""

    NUMBER = "number"  # int or Fraction
    TIME = "time of day"  # ns since midnight
    DURATION = "duration"  # ns
    TEXT = "text"
    TRUTH = "truth value"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. `value` is int, Fraction, str, bool or None."""

    value: int | Fraction | str | bool | None
    unit: Unit
    at: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """A column, of the rows of a pattern variable where one is named (`B.price`)."""

    name: str
    variable: str | None = None
    at: int = 0


@dataclass(frozen=True, slots=True)
class Unary:
    """`not` or `-`."""

    sign: str
    item: Node
    at: int = 0


@dataclass(frozen=True, slots=True)
class Binary:
    """`and or = != < <= > >= + - * / % ||`."""

    sign: str
    left: Node
    right: Node
    at: int = 0


@dataclass(frozen=True, slots=True)
class In:
    item: Node
    options: tuple[Node, ...]
    at: int = 0


@dataclass(frozen=True, slots=True)
class Between:
    """Both ends belong to it."""

    item: Node
    low: Node
    high: Node
    at: int = 0


@dataclass(frozen=True, slots=True)
class Matches:
    """`item ~ 'pattern'`: the pattern (docs/dialect.md) occurs in the text."""

    item: Node
    pattern: str
    at: int = 0


@dataclass(frozen=True, slots=True)
class IsNull:
    item: Node
    at: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """A function. `frame`: "running" or "final" before it, else "". `star`: its argument is `*` or `X.*`,
    and `variable` is then X."""

    name: str
    arguments: tuple[Node, ...] = ()
    frame: str = ""
    star: bool = False
    variable: str | None = None
    at: int = 0


Node = Literal | Column | Unary | Binary | In | Between | Matches | IsNull | Call


def children(node: Node) -> tuple[Node, ...]:
    """The nodes directly below, from left to right."""
    if isinstance(node, (Literal, Column)):
        return ()
    if isinstance(node, (Unary, Matches, IsNull)):
        return (node.item,)
    if isinstance(node, Binary):
        return node.left, node.right
    if isinstance(node, In):
        return node.item, *node.options
    if isinstance(node, Between):
        return node.item, node.low, node.high
    return node.arguments


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    pending = [node]
    while pending:
        here = pending.pop()
        yield here
        pending.extend(reversed(children(here)))


def conjuncts(node: Node) -> list[Node]:
    """The terms that `and` joins at the top."""
    if isinstance(node, Binary) and node.sign == "and":
        return conjuncts(node.left) + conjuncts(node.right)
    return [node]


def show(value: Any) -> str:
    """A constant as a user would write it."""
    return f"'{value}'" if isinstance(value, str) else str(value)
