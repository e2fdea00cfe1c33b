"""Glushkov's automaton read from right to left."""

from __future__ import annotations

from trident_query.glushkov import Glushkov, Steps
from trident_query.kinds import KINDS
from trident_query.limits import DEFAULT, Limits


def reverse(g: Glushkov, limits: Limits = DEFAULT) -> Glushkov:
    """The automaton of reversed texts. Positions keep their numbers; kinds before and after change places.

    Preferences mean nothing in it: `steps` and `begins` are empty. Reading a text from the right with
    searching starts, the set of positions after byte i holds exactly those that can read byte i and still
    come to the end of a match; one begins before byte i where the set has one of `g.first[kind before]`.
    Raises LimitError (edges): lists that positions share are not shared in this direction.
    """
    edges = sum(map(len, g.follow))
    if edges > limits.edges:
        raise g.blame.error("edges", edges, limits.edges)
    into: list[list[int]] = [[] for _ in range(len(g))]
    for p, steps in enumerate(g.follow):
        for q in steps:
            into[q].append(p)
    begins_after = [0] * len(g)
    for before in range(KINDS):
        for q in g.first[before]:
            begins_after[q] |= 1 << before
    shared: dict[Steps, Steps] = {}
    follow = tuple(shared.setdefault(steps, steps) for steps in map(tuple, into))
    first = tuple(tuple(sorted(g.last(after))) for after in range(KINDS))
    empty = tuple(
        sum(1 << before for before in range(KINDS) if g.empty[before] >> after & 1) for after in range(KINDS)
    )
    return Glushkov(
        g.values, follow, tuple(begins_after), first, empty, (), (), g.kind_of, g.classes, g.blame
    )
