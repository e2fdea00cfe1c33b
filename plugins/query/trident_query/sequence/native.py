"""The native form: `--define "big: type='A' and shares>=10000" --match "big (E|C)* D" --per order --within
5ms`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from trident_core.errors import PatternError, UsageError
from trident_query.sequence.measures import FUNCTIONS
from trident_query.sequence.pattern import ANY, parse_pattern, variables
from trident_query.sequence.question import Absence, Measure, Question, Rows, Skip
from trident_query.where.parse import parse_expression
from trident_query.where.tokens import parse_duration
from trident_query.where.tree import Binary, Call, Column, Literal, Node, Unit, walk

#: Letters that stand for a row of that type where no --define names them.
TYPE_LETTERS: Final = frozenset("SRHYLVWKJhAFECXDUPQBINO")
PARTITIONS: Final = ("order", "symbol", "mpid", "all")

_DEFINE: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*:(?!=)")
_ABSENT: Final = re.compile(r"\bnot\s+([A-Za-z_][A-Za-z0-9_]*)\s+within\s+(\S+)\s*$", re.IGNORECASE)
_SKIPS: Final = {"past": Skip.PAST_LAST, "next": Skip.NEXT_ROW}


def native_question(
    match: str, *, define: Sequence[str] = (), per: str = "order", within: str | None = None,
    skip: str = "past", measures: Sequence[str] = (), all_rows: bool = False,
) -> Question:  # fmt: skip
    """A question of the texts of the options.

    `match` may end with `not X within 5ms`: the match counts only if no row of X follows in that time. `skip`
    is past, next, first:VARIABLE or last:VARIABLE; a measure `name = expression` or an expression. Raises
    PatternError with the place of what cannot stand there, UsageError for an option that does not exist.
    """
    if per not in PARTITIONS:
        raise UsageError(f"--per {per!r}", hint=f"--per takes {', '.join(PARTITIONS)}")
    text, absence = _absence(match)
    pattern = parse_pattern(text)
    texts = dict(_definition(each) for each in define)
    trees = {name: parse_expression(condition) for name, condition in texts.items()}
    for name in [*variables(pattern), *([absence.variable] if absence else [])]:
        if name == ANY or name in trees:
            continue
        if name not in TYPE_LETTERS:
            raise PatternError(
                f"{name} is no type letter and not defined", pattern=match,
                position=len(match[: max(re.search(rf"\b{name}\b", match).start(), 0)].encode()),  # type: ignore[union-attr]
                hint=f'add --define "{name}: …"',
            )  # fmt: skip
        trees[name] = Binary("=", Column("type"), Literal(name, Unit.TEXT))
        texts[name] = f"type = '{name}'"
    skipping, target = _skip(skip)
    made = tuple(_measure(each) for each in measures)
    question = Question(
        pattern, trees, texts, {}, made, (), (), Rows.ALL if all_rows else Rows.ONE, skipping, target,
        None if within is None else parse_duration(within), absence,
    )  # fmt: skip
    question.check()
    return question


def _absence(match: str) -> tuple[str, Absence | None]:
    found = _ABSENT.search(match)
    if not found:
        return match, None
    return match[: found.start()], Absence(found[1], parse_duration(found[2]))


def _definition(text: str) -> tuple[str, str]:
    found = _DEFINE.match(text)
    if not found:
        raise PatternError("a definition is NAME: condition", pattern=text, position=0,
                           hint="as in big: type='A' and shares>=10000")  # fmt: skip
    return found[1], text[found.end() :]


def _skip(text: str) -> tuple[Skip, str]:
    word, _, variable = text.partition(":")
    if word in _SKIPS and not variable:
        return _SKIPS[word], ""
    if word in ("first", "last") and variable:
        return (Skip.FIRST if word == "first" else Skip.LAST), variable
    raise UsageError(f"--skip {text!r}", hint="--skip takes past, next, first:VARIABLE or last:VARIABLE")


def _measure(text: str) -> Measure:
    found = re.match(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=(?!=)", text)
    name, body = (found[1], text[found.end() :]) if found else (text.strip(), text)
    tree = parse_expression(body)
    for leaf in walk(tree):
        if isinstance(leaf, Call) and leaf.name not in FUNCTIONS:
            raise PatternError(f"no function {leaf.name!r}", pattern=body, position=leaf.at,
                               hint=f"there are {', '.join(sorted(FUNCTIONS))}")  # fmt: skip
    return Measure(name, tree, body.strip())


def is_local(tree: Node) -> bool:
    """Does a condition look only at the row and, by prev, at the one before: can a letter say what it is?"""
    for leaf in walk(tree):
        if isinstance(leaf, Column) and leaf.variable is not None:
            return False
        if isinstance(leaf, Call) and (leaf.name != "prev" or len(leaf.arguments) != 1 or leaf.frame):
            return False
    return True


def strip_own(tree: Node, name: str) -> Node:
    """A variable's condition in which `B.price` of B itself is `price`: the row at hand is B's last one."""
    if isinstance(tree, Column):
        return replace(tree, variable=None) if tree.variable == name else tree
    if isinstance(tree, Literal):
        return tree
    changes: dict[str, Any] = {}
    for part in ("item", "left", "right", "low", "high"):
        if hasattr(tree, part):
            changes[part] = strip_own(getattr(tree, part), name)
    for part in ("options", "arguments"):
        if hasattr(tree, part):
            changes[part] = tuple(strip_own(each, name) for each in getattr(tree, part))
    if isinstance(tree, Call):
        changes.pop("item", None)
    return replace(tree, **changes)
