"""Glushkov's automaton: one position for each byte that a pattern reads, no free states, no assertions left.

V. M. Glushkov, "The abstract theory of automata", 1961. Positions are numbered from 0. What comes after a
position is decided by one more thing only where assertions are used: the *kind* of the next byte
(`trident_query.kinds`: OTHER, WORD_BYTE, NEWLINE_BYTE, OUTSIDE). A position whose bytes are of several kinds
is split, so that the kind of the byte it read is known, too; `^ $ \\A \\z \\b \\B` then are plain facts about
which position may follow which, which may come first, and which last:

    search(text), does the pattern occur?      D = set of positions that have just read a byte
        before = OUTSIDE; D = {}
        for byte in text:
            kind = g.kind_of[byte]
            if any position of D is in g.last[kind], or g.empty[before] >> kind & 1: yes
            D = {q in follow of D, or in g.first[before], that reads byte}
            before = kind
        yes if any position of D is in g.last[OUTSIDE], or g.empty[before] >> OUTSIDE & 1

Without assertions, every `first[...]` is the same, every `last[...]` is, and `empty[...]` is 0 or ALL_KINDS.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from trident_query.ast import ByteSet, Node, Repeat
from trident_query.classes import ByteClasses, partition
from trident_query.kinds import ALL_KINDS, HOLDING, KINDS, OTHER, kinds_that_matter
from trident_query.limits import DEFAULT, Blame, Clock, Limits
from trident_query.nfa import ACCEPT, NFA, build

#: In a list of steps: the match ends here.
END: Final = -1

#: Positions that may come next (END among them), the preferred first. Only leftmost-first needs their order.
Steps = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Glushkov:
    """The automaton. All lists are indexed by position, or by kind (0 to 3), as said.

    values[p]: the bytes that position p reads, all of one kind where kinds matter; never empty.
    follow[p]: the positions that may come after p, in order of preference, without END.
    accepts[p]: mask of the kinds of next byte before which a match may end after p; bit `1 << kind`.
    first[before]: the positions where a match may begin, by the kind of the byte before it, in order.
    empty[before]: mask of the kinds of next byte between which and `before` the empty string matches.
    steps[p][after], begins[before][after]: the same with END in its place, for one kind of next byte: what
    leftmost-first asks. With OUTSIDE as `after` no position follows, so these lists are (END,) or empty.
    kind_of: byte -> kind, 256 bytes, kinds that the pattern cannot tell apart made one.
    classes: bytes that no position and no kind tells apart.
    """

    values: tuple[ByteSet, ...]
    follow: tuple[Steps, ...]
    accepts: tuple[int, ...]
    first: tuple[Steps, ...]
    empty: tuple[int, ...]
    steps: tuple[tuple[Steps, ...], ...]
    begins: tuple[tuple[Steps, ...], ...]
    kind_of: bytes = field(repr=False)
    classes: ByteClasses = field(repr=False)
    blame: Blame = field(default_factory=Blame, compare=False)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def conditional(self) -> bool:
        """Whether assertions are used: kinds decide something."""
        return (
            len(set(self.first)) > 1
            or any(mask not in (0, ALL_KINDS) for mask in (*self.accepts, *self.empty))
            or len(set(self.kind_of)) > 1
        )

    def last(self, after: int) -> frozenset[int]:
        """The positions after which a match may end, before a byte of kind `after`."""
        return frozenset(p for p, mask in enumerate(self.accepts) if mask >> after & 1)


def glushkov(node: Node, *, pattern: str = "", limits: Limits = DEFAULT) -> Glushkov:
    """The automaton of a tree. `pattern`: its text, for messages.

    Positions that can neither be reached nor come to an end are left out. Raises LimitError (positions,
    edges, seconds).
    """
    return _Builder(node, blame(node, pattern), limits).run()


def blame(node: Node, pattern: str) -> Blame:
    """What to name when `pattern` is too large: the repeat with the most states, if it has most of them."""
    worst: Repeat | None = None
    pending: list[Node] = [node]
    while pending:
        item = pending.pop()
        if isinstance(item, Repeat):
            inner = item.item
            if item.span[1] and (worst is None or item.size - inner.size > worst.size - worst.item.size):
                worst = item
            pending.append(inner)
        else:
            pending.extend(getattr(item, "items", ()))
    if worst is None or worst.size * 2 < node.size:
        return Blame(pattern, pattern, 0)
    start, end = worst.span
    return Blame(pattern, pattern[start:end], len(pattern[:start].encode("utf-8", "surrogateescape")))


class _Row(NamedTuple):
    """What may come next: by kind of the next byte with END in place; positions for any; where END is."""

    by_kind: tuple[Steps, ...]
    positions: Steps
    mask: int


class _Builder:
    """From Thompson's automaton: what each reading state reaches without reading, in order of preference."""

    def __init__(self, node: Node, blame: Blame, limits: Limits) -> None:
        self.nfa: NFA = build(node)
        self.limits, self.blame, self.clock = limits, blame, Clock(limits, blame)
        used = 0
        for needs in self.nfa.needs:
            used |= needs
        self.kind_of = kinds_that_matter(used)
        self.inner_kinds = sorted(set(self.kind_of))
        self.anchored = bool(used)
        self.edges = 0
        self.by_closure: dict[tuple[int, int], Steps] = {}
        self.rows: dict[tuple[int, int], _Row] = {}
        self.positions: list[tuple[int, ByteSet, int]] = []  # (state, bytes, kind)
        self.of_state: dict[int, tuple[int, ...]] = {}
        self.holding = [[h & used for h in row] for row in HOLDING]

    def run(self) -> Glushkov:
        self._number_positions()
        entering = [self._row(self.nfa.start, before) for before in range(KINDS)]
        leaving = [self._row(self.nfa.outs[state][0], kind) for state, _, kind in self.positions]
        values = tuple(values for _, values, _ in self.positions)
        kinds = [frozenset(b for b in range(256) if self.kind_of[b] == kind) for kind in self.inner_kinds]
        return _pruned(
            Glushkov(
                values,
                follow=tuple(row.positions for row in leaving),
                accepts=tuple(row.mask for row in leaving),
                first=tuple(row.positions for row in entering),
                empty=tuple(row.mask for row in entering),
                steps=tuple(row.by_kind for row in leaving),
                begins=tuple(row.by_kind for row in entering),
                kind_of=self.kind_of,
                classes=partition([*set(values), *kinds]),
                blame=self.blame,
            )
        )

    def _number_positions(self) -> None:
        parts: dict[ByteSet, list[tuple[ByteSet, int]]] = {}
        for state in range(len(self.nfa) - 1, ACCEPT, -1):  # built from the end: this is the pattern's order
            values = self.nfa.reads[state]
            if not values:
                continue
            if values not in parts:
                split = [(frozenset(v for v in values if self.kind_of[v] == k), k) for k in self.inner_kinds]
                parts[values] = [part for part in split if part[0]]
            start = len(self.positions)
            self.positions += [(state, part, kind) for part, kind in parts[values]]
            self.of_state[state] = tuple(range(start, len(self.positions)))
            if len(self.positions) > self.limits.positions:
                raise self.blame.error("positions", len(self.positions), self.limits.positions)

    def _row(self, target: int, before: int) -> _Row:
        """What is reached from `target`, behind a byte of kind `before`, for each kind of next byte."""
        key = (target, before if self.anchored else OTHER)
        known = self.rows.get(key)
        if known is None:
            known = self.rows[key] = self._make_row(*key)
            if not len(self.rows) % 256:
                self.clock.check()
        return known

    def _make_row(self, target: int, before: int) -> _Row:
        if not self.anchored:
            reached = self._closure(target, 0)
            if END not in reached:
                return _Row((reached, reached, reached, ()), reached, 0)
            return _Row((reached, reached, reached, (END,)), tuple(q for q in reached if q != END), ALL_KINDS)
        by_kind = []
        for after in range(KINDS):
            steps = self._closure(target, self.holding[before][after])
            by_kind.append(tuple(q for q in steps if q == END or self.positions[q][2] == after))
        positions = dict.fromkeys(q for steps in by_kind for q in steps if q != END)
        mask = sum(1 << kind for kind, steps in enumerate(by_kind) if END in steps)
        return _Row(tuple(by_kind), tuple(positions), mask)

    def _closure(self, target: int, holds: int) -> Steps:
        """Positions and END reached without reading where `holds` holds, depth first, each once."""
        key = (target, holds)
        if key in self.by_closure:
            return self.by_closure[key]
        nfa, seen, found = self.nfa, set[int](), list[int]()
        pending = [target]
        while pending:
            state = pending.pop()
            if state in seen:
                continue
            seen.add(state)
            if state == ACCEPT:
                found.append(END)
            elif nfa.reads[state] is not None:
                found.extend(self.of_state.get(state, ()))
            elif not nfa.needs[state] & ~holds:
                pending.extend(reversed(nfa.outs[state]))
        self.edges += len(seen)
        if self.edges > self.limits.edges:
            raise self.blame.error("edges", self.edges, self.limits.edges)
        self.by_closure[key] = tuple(found)
        return self.by_closure[key]


def _useful(g: Glushkov) -> list[int]:
    """The positions that some match goes through, ascending. Lists that positions share are walked once."""
    seen: set[int] = set()
    walked: set[int] = set()
    pending = list(g.first)
    while pending:
        steps = pending.pop()
        if id(steps) in walked:
            continue
        walked.add(id(steps))
        fresh = [q for q in steps if q not in seen]
        seen.update(fresh)
        pending += [g.follow[q] for q in fresh]
    owners: dict[int, list[int]] = {}
    for p in seen:
        owners.setdefault(id(g.follow[p]), []).append(p)
    into: dict[int, list[int]] = {}
    for number, owned in owners.items():
        for q in g.follow[owned[0]]:
            into.setdefault(q, []).append(number)
    pending_ends = [p for p in seen if g.accepts[p]]
    ending = set(pending_ends)
    while pending_ends:
        for number in into.pop(pending_ends.pop(), ()):
            fresh = [p for p in owners.pop(number, ()) if p not in ending]
            ending.update(fresh)
            pending_ends += fresh
    return sorted(ending)


def _pruned(g: Glushkov) -> Glushkov:
    """Without the positions that no match goes through."""
    kept = _useful(g)
    if len(kept) == len(g):
        return g
    new = {old: number for number, old in enumerate(kept)} | {END: END}
    made: dict[int, Steps] = {}

    def renamed(steps: Steps) -> Steps:
        if id(steps) not in made:
            made[id(steps)] = tuple(new[q] for q in steps if q in new)
        return made[id(steps)]

    return Glushkov(
        tuple(g.values[p] for p in kept),
        tuple(renamed(g.follow[p]) for p in kept),
        tuple(g.accepts[p] for p in kept),
        tuple(map(renamed, g.first)),
        g.empty,
        tuple(tuple(map(renamed, g.steps[p])) for p in kept),
        tuple(tuple(map(renamed, row)) for row in g.begins),
        g.kind_of,
        g.classes,
        g.blame,
    )
