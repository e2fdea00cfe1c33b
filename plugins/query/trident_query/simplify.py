"""Smaller trees with the same matches and the same preferences.

`simplify` merges branches of single bytes into a class, takes common prefixes out of neighbouring branches
(an alternation of sorted names becomes a trie), drops branches that can match nothing, and flattens what is
nested for no reason. Each rule keeps leftmost-first matching as it was, so engines need one tree only. The
reference engine does without it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Final

from trident_query.ast import (
    EMPTY,
    Assertion,
    Chain,
    Choice,
    Empty,
    Node,
    OneOf,
    Repeat,
    chain,
    choice,
    repeat,
)

#: Matches nothing.
NEVER: Final = OneOf(frozenset())


#: Nesting that the rule of common prefixes may add to a tree, on any path: compilers recurse over trees.
PREFIX_NESTING_MAX: Final = 120


#: Items that the rule may move, for each state of a tree: names of one length need as many as they are long.
PREFIX_WORK_MAX: Final = 8


@dataclass(slots=True)
class _Work:
    """What the rule of common prefixes may still do."""

    nesting: int  # levels that it may add to each choice
    items: int  # that it may move


def simplify(node: Node) -> Node:
    """An equivalent tree, never of more states."""
    nesting = PREFIX_NESTING_MAX // max(1, _choices(node))
    return _simplified(node, _Work(nesting, PREFIX_WORK_MAX * (node.size + 100)))


def _choices(node: Node) -> int:
    """How many choices there are on the path that has most."""
    match node:
        case Choice(items):
            return 1 + max(map(_choices, items))
        case Chain(items):
            return max(map(_choices, items))
        case Repeat(item):
            return _choices(item)
    return 0


def _simplified(node: Node, work: _Work) -> Node:
    match node:
        case Chain(items):
            return _chain([_simplified(item, work) for item in items])
        case Choice(items):
            return _choice([_simplified(item, work) for item in items], work)
        case Repeat():
            return _repeat(node, _simplified(node.item, work))
        case Empty() | OneOf() | Assertion():
            return node
    raise AssertionError(f"not a node: {node!r}")


def _chain(items: list[Node]) -> Node:
    flat: list[Node] = []
    for item in items:
        if item == NEVER:
            return NEVER
        flat += item.items if isinstance(item, Chain) else [item]
    return chain(flat)


def _choice(items: list[Node], work: _Work) -> Node:
    flat: list[Node] = []
    for item in items:
        flat += item.items if isinstance(item, Choice) else [item]
    branches = [item for item in flat if item != NEVER]
    if not branches:
        return NEVER
    return _grouped(branches, work, work.nesting)


def _grouped(branches: list[Node], work: _Work, nesting: int) -> Node:
    """The choice of `branches`, neighbours that begin with the same items made one, `nesting` deep."""
    made: list[Node] = []
    work.items -= sum(len(item.items) if isinstance(item, Chain) else 1 for item in branches)
    allowed = nesting and work.items > 0
    for head, group in groupby(branches, _head if allowed else lambda item: None):
        same = list(group)
        if len(same) == 1 or head is None:
            made += same
            continue
        rows = [item.items if isinstance(item, Chain) else (item,) for item in same]
        length = _common(rows)
        tails = [chain(row[length:]) for row in rows]
        made.append(_chain([*rows[0][:length], _grouped(tails, work, nesting - 1)]))
    merged: list[Node] = []
    for item in made:
        last = merged[-1] if merged else None
        if isinstance(item, OneOf) and isinstance(last, OneOf):
            merged[-1] = OneOf(last.values | item.values)
        elif item != last or not isinstance(item, Empty):  # the same again is never preferred
            merged.append(item)
    return choice(merged)


def _head(item: Node) -> Node | None:
    """The first byte or assertion of a branch; None where there is none to take out."""
    first = item.items[0] if isinstance(item, Chain) else item
    return first if isinstance(first, (OneOf, Assertion)) else None


def _common(rows: list[tuple[Node, ...]]) -> int:
    """How many bytes and assertions all rows begin with; at least one."""
    length = min(map(len, rows))
    for row in rows[1:]:
        at = 1
        while at < length and row[at] == rows[0][at] and isinstance(row[at], (OneOf, Assertion)):
            at += 1
        length = at
    return length


def _repeat(node: Repeat, item: Node) -> Node:
    if item == NEVER:
        return EMPTY if node.low == 0 else NEVER
    if (node.low, node.high) == (1, 1):
        return item
    inner_star = isinstance(item, Repeat) and (item.low, item.high, item.lazy) == (0, None, node.lazy)
    if inner_star and node.high is None:
        return item  # (a*)* and (a*)+ are a*
    return repeat(item, node.low, node.high, lazy=node.lazy, span=node.span)
