"""Row patterns as a program of six instructions: what both the backtracking reference and the automata
follow.
"""

from __future__ import annotations

from dataclasses import dataclass

from trident_query.sequence.pattern import Chain, Choice, Empty, End, Node, Start, Variable


@dataclass(frozen=True, slots=True)
class TakeRow:
    """The row at hand satisfies the variable; go on behind both."""

    name: str
    hidden: bool


@dataclass(frozen=True, slots=True)
class Try:
    """Go on at `first`; if that leads to no match, at `second`."""

    first: int
    second: int


@dataclass(frozen=True, slots=True)
class Jump:
    to: int


@dataclass(frozen=True, slots=True)
class At:
    """Go on only at the start (or at the end) of the partition."""

    end: bool


@dataclass(frozen=True, slots=True)
class Enter:
    """An iteration of a loop begins here."""

    loop: int


@dataclass(frozen=True, slots=True)
class Again:
    """An iteration ends: back to `head`, or out of the loop (to the next instruction) if it took no row."""

    loop: int
    head: int


@dataclass(frozen=True, slots=True)
class Found:
    """A match ends here."""


Instruction = TakeRow | Try | Jump | At | Enter | Again | Found


def compile_pattern(pattern: Node) -> list[Instruction]:
    """The program of a pattern; it begins at 0 and ends with its only `Found`."""
    made: list[Instruction] = []
    _emit(pattern, made)
    made.append(Found())
    return made


def _emit(node: Node, made: list[Instruction]) -> None:
    if isinstance(node, Empty):
        return
    if isinstance(node, Variable):
        made.append(TakeRow(node.name, node.hidden))
    elif isinstance(node, (Start, End)):
        made.append(At(isinstance(node, End)))
    elif isinstance(node, Chain):
        for item in node.items:
            _emit(item, made)
    elif isinstance(node, Choice):
        _emit_choice(node, made)
    else:
        head = len(made)
        made += [Jump(0), Enter(head)]
        _emit(node.item, made)
        made.append(Again(head, head))
        body, out = head + 1, len(made)
        made[head] = Try(out, body) if node.lazy else Try(body, out)


def _emit_choice(node: Choice, made: list[Instruction]) -> None:
    jumps = []
    for item in node.items[:-1]:
        at = len(made)
        made.append(Jump(0))
        _emit(item, made)
        jumps.append(len(made))
        made.append(Jump(0))
        made[at] = Try(at + 1, len(made))
    _emit(node.items[-1], made)
    for at in jumps:
        made[at] = Jump(len(made))
