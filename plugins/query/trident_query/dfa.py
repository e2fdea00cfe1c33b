"""Deterministic automata as dense tables over byte classes, made from Glushkov's automaton by subsets.

    dfa = determinise(glushkov(parse("^AA")))            # does it occur? one look-up for each byte
    state = dfa.starts[OUTSIDE]
    for byte in text: state = dfa.table[state, dfa.classes.of[byte]]
    occurs = dfa.accepts[state] >> OUTSIDE & 1

What a state accepts depends on the kind of the byte that comes next, where assertions are used:
`accepts[state] >> kind & 1` is asked with the kind of the next byte, or OUTSIDE at the end of the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_query.classes import ByteClasses
from trident_query.glushkov import Glushkov, Steps
from trident_query.kinds import ALL_KINDS, KINDS, OUTSIDE
from trident_query.limits import DEFAULT, Blame, Clock, Limits

#: The state without a future, in every automaton: it accepts nothing and goes on to itself.
DEAD: Final = 0


@dataclass(frozen=True, slots=True)
class Dfa:
    """A complete automaton.

    table: u16[states, classes.count], u32 beyond 65,536 states, C-contiguous, read-only. State 0 is DEAD.
    accepts: u8[states], a mask of kinds of next byte (bit `1 << kind`). starts[before]: the state to begin
    in, by the kind of the byte before. full: the state that accepts whatever follows and stays there, or -1.
    sets: for an automaton of `determinise(merge=False)`, the positions of each state, else empty.
    """

    table: NDArray[Any]
    accepts: NDArray[np.uint8]
    starts: tuple[int, ...]
    full: int
    classes: ByteClasses = field(repr=False)
    kind_of: bytes = field(repr=False)
    sets: tuple[frozenset[int], ...] = field(default=(), repr=False)
    blame: Blame = field(default_factory=Blame, compare=False)

    @property
    def states(self) -> int:
        return len(self.accepts)

    @property
    def table_bytes(self) -> int:
        return int(self.table.nbytes)

    def kinds(self) -> NDArray[np.uint8]:
        """u8[classes]: the kind of the bytes of each class."""
        return np.array([self.kind_of[value] for value in self.classes.representatives], dtype=np.uint8)

    def accepts_text(self, text: bytes, before: int = OUTSIDE, after: int = OUTSIDE) -> bool:
        """Walk the table over `text`; slow, for tests and small inputs."""
        state = self.starts[before]
        for value in text:
            state = int(self.table[state, self.classes.of[value]])
        return bool(self.accepts[state] >> after & 1)


def determinise(
    g: Glushkov, *, search: bool = True, stop: bool = True, merge: bool = True, limits: Limits = DEFAULT
) -> Dfa:
    """The automaton of the subsets of `g`'s positions that a text can reach.

    search: a match may begin at every byte, not only at the first. stop: once a match has ended, every longer
    text is accepted ("does it occur?"); without it a state accepts where a match ends right there (all ends).
    merge: positions with the same future share a place in the subsets; False keeps them apart, so that `sets`
    says where each state stands. Not minimised. Raises LimitError (states, table_bytes, seconds).
    """
    return _Subsets(g, search=search, stop=stop, merge=merge, limits=limits).run()


def minimised(dfa: Dfa) -> Dfa:
    """The smallest automaton that accepts the same from each of its starts. `sets` are lost."""
    from trident_query.minimise import minimise

    blocks = minimise(dfa.table, dfa.accepts)
    count = int(blocks.max()) + 1
    if count == dfa.states and not dfa.sets:
        return dfa
    first = np.zeros(count, np.int64)
    first[blocks[::-1]] = np.arange(dfa.states)[::-1]
    table = blocks[dfa.table[first]]
    return Dfa(
        packed(table, count),
        dfa.accepts[first],
        tuple(int(blocks[state]) for state in dfa.starts),
        int(blocks[dfa.full]) if dfa.full >= 0 else -1,
        dfa.classes,
        dfa.kind_of,
        (),
        dfa.blame,
    )


def padded(dfa: Dfa, pads: bytes = b" \0", limits: Limits = DEFAULT) -> Dfa:
    """The automaton for values with padding: it accepts v, before OUTSIDE, iff `dfa` accepts v without the
    `pads` at its end. So a field is read to its full width, without a look for its end.

    A state of it is one of `dfa`, and whether the text accepted before the pads that were read last. Classes
    are those of `dfa`, with the pads as one more set. Only `accepts >> OUTSIDE` means something.
    """
    from trident_query.classes import partition

    old = dfa.classes
    classes = partition([*(old.members(c) for c in range(old.count)), frozenset(pads)])
    to_old = [old.of[value] for value in classes.representatives]
    is_pad = [value in pads for value in classes.representatives]
    ends = [bool(mask >> OUTSIDE & 1) for mask in dfa.accepts.tolist()]
    rows = dfa.table.tolist()
    # (state, in pads, accepted before them); outside pads the third follows from the first.
    start = (dfa.starts[OUTSIDE], False, ends[dfa.starts[OUTSIDE]])
    numbers = {(DEAD, False, False): 0}
    if dfa.full >= 0:
        numbers[dfa.full, False, True] = 1
    numbers.setdefault(start, len(numbers))
    pending = list(numbers)
    table: list[list[int]] = []
    for state, _, accepted in pending:
        row = []
        for c, pad in enumerate(is_pad):
            after = rows[state][to_old[c]]
            key = (after, pad, accepted) if pad else (after, False, ends[after])
            if pad and ends[after] == accepted and after in (DEAD, dfa.full):
                key = (after, False, accepted)
            if key not in numbers:
                numbers[key] = len(numbers)
                pending.append(key)
            row.append(numbers[key])
        table.append(row)
        if len(numbers) > 2 * limits.states:
            raise dfa.blame.error("states", len(numbers), 2 * limits.states)
    accepts = np.array([ALL_KINDS if accepted else 0 for _, _, accepted in pending], np.uint8)
    full = 1 if dfa.full >= 0 else -1
    made = packed(np.array(table), len(pending))
    kind_of = bytes(dfa.kind_of)
    return minimised(Dfa(made, accepts, (numbers[start],) * KINDS, full, classes, kind_of, (), dfa.blame))


def packed(table: NDArray[Any], states: int) -> NDArray[Any]:
    """A transition table in the smallest of u16 and u32 that holds its states; read-only."""
    made = np.ascontiguousarray(table, dtype=np.uint16 if states <= 1 << 16 else np.uint32)
    made.flags.writeable = False
    return made


class _Base(NamedTuple):
    """What a search adds to every state reached by a byte: the matches that begin with that byte."""

    places: frozenset[int]
    kind: int  # of that byte


_State = tuple[frozenset[int], int]  # places, and the number of a _Base


class _Subsets:
    """Subset construction. A *place* stands for positions with the same follow list and acceptance.

    In a search every state contains the places of the matches that have just begun. They depend on the last
    two bytes only, so they are kept apart as the state's base, and what they lead to is computed once: an
    alternation of thousands costs what its own branches cost.
    """

    def __init__(self, g: Glushkov, *, search: bool, stop: bool, merge: bool, limits: Limits) -> None:
        self.g, self.search, self.stop, self.merge, self.limits = g, search, stop, merge, limits
        self.classes = g.classes
        self.kinds = [g.kind_of[value] for value in g.classes.representatives]
        self.clock = Clock(limits, g.blame)
        self.place_of: list[int] = []
        self.follow: list[Steps] = []  # by place
        self.accepts: list[int] = []
        self._places()
        self.by_place: list[list[frozenset[int]]] = [[] for _ in self.follow]
        within = {values: g.classes.within(values) for values in set(g.values)}
        self.readers = [within[values] for values in g.values]
        self.lists: dict[int, list[frozenset[int]]] = {}
        self.same_kind = [
            next(k for k in range(KINDS) if (g.first[k], g.empty[k]) == (g.first[kind], g.empty[kind]))
            for kind in range(KINDS)
        ]  # the first kind before which the same begins
        self.bases: dict[_Base, int] = {}
        self.base_list: list[_Base] = []
        self.base_next: dict[int, list[frozenset[int]]] = {}
        self.begun: dict[int, list[int]] = {}
        self.begun_places: dict[int, list[frozenset[int]]] = {}
        self.no_bases = [0] * g.classes.count
        self.numbers: dict[_State, int] = {}
        self.pending: list[_State] = []

    def _places(self) -> None:
        known: dict[tuple[int, int] | int, int] = {}
        lists: dict[int, int] = {}  # by identity first: hashing a long list for each position is quadratic
        equal: dict[Steps, int] = {}
        for p, (steps, mask) in enumerate(zip(self.g.follow, self.g.accepts, strict=True)):
            if self.merge and id(steps) not in lists:
                lists[id(steps)] = equal.setdefault(steps, len(equal))
            place = known.setdefault((lists[id(steps)], mask) if self.merge else p, len(known))
            if place == len(self.follow):
                self.follow.append(steps)
                self.accepts.append(mask)
            self.place_of.append(place)

    def run(self) -> Dfa:
        g, classes = self.g, self.classes
        dead = self._base(frozenset(), -1)
        self._number((frozenset(), dead))
        full = -1
        if self.stop:
            full = self._number((frozenset(), self._base(frozenset(), -2)))
        starts = tuple(self._start(before) for before in range(KINDS))
        rows: list[list[int]] = []
        masks: list[int] = []
        for at, (places, base) in enumerate(self.pending):
            mask = self._mask(places, base)
            masks.append(mask)
            if at == full:
                rows.append([full] * classes.count)
            else:
                rows.append(self._row(places, base, mask, full))
            if not at % 64:
                self.clock.check()
        made = packed(np.array(rows, dtype=np.uint32), len(rows))
        if made.nbytes > self.limits.table_bytes:
            raise g.blame.error("table_bytes", made.nbytes, self.limits.table_bytes)
        sets: tuple[frozenset[int], ...] = ()
        if not self.merge:
            sets = tuple(places | self.base_list[base].places for places, base in self.pending)
        accepts = np.array(masks, np.uint8)
        return Dfa(made, accepts, starts, full, classes, g.kind_of, sets, g.blame)

    # --- states ---------------------------------------------------------------------------------------------

    def _base(self, places: frozenset[int], kind: int) -> int:
        base = _Base(places, kind)
        if base not in self.bases:
            self.bases[base] = len(self.base_list)
            self.base_list.append(base)
        return self.bases[base]

    def _start(self, before: int) -> int:
        return self._number((frozenset(), self._base(frozenset(), self.same_kind[before])))

    def _number(self, state: _State) -> int:
        number = self.numbers.get(state)
        if number is None:
            number = self.numbers[state] = len(self.numbers)
            self.pending.append(state)
            if number >= self.limits.states:
                raise self.g.blame.error("states", number + 1, self.limits.states)
        return number

    def _mask(self, places: frozenset[int], base: int) -> int:
        """The kinds of next byte before which this state accepts."""
        found, kind = self.base_list[base]
        if kind == -2:
            return ALL_KINDS
        mask = self.g.empty[kind] if kind >= 0 else 0
        for place in places:
            mask |= self.accepts[place]
        for place in found:
            mask |= self.accepts[place]
        return mask

    # --- transitions ----------------------------------------------------------------------------------------

    def _by_class(self, steps: Steps) -> list[frozenset[int]]:
        """For each class, the places that the positions of `steps` that read it lead to; remembered."""
        known = self.lists.get(id(steps))
        if known is None:
            buckets: list[set[int]] = [set() for _ in range(self.classes.count)]
            for q in steps:
                place = self.place_of[q]
                for c in self.readers[q]:
                    buckets[c].add(place)
            known = self.lists[id(steps)] = [frozenset(bucket) for bucket in buckets]
        return known

    def _of_place(self, place: int) -> list[frozenset[int]]:
        known = self.by_place[place] = self._by_class(self.follow[place])
        return known

    def _after_base(self, base: int) -> list[frozenset[int]]:
        known = self.base_next.get(base)
        if known is None:
            known = self.base_next[base] = self._union(self.base_list[base].places)
        return known

    def _union(self, places: frozenset[int]) -> list[frozenset[int]]:
        lists = [self.by_place[place] or self._of_place(place) for place in places]
        if len(lists) == 1:
            return lists[0]
        if not lists:
            return [frozenset()] * self.classes.count
        return list(map(frozenset().union, *lists))

    def _row(self, places: frozenset[int], base: int, mask: int, full: int) -> list[int]:
        if full >= 0 and mask == ALL_KINDS:
            return [full] * self.classes.count
        own = self._union(places)
        kind_before = self.base_list[base].kind
        if kind_before < 0:
            reached = own
            bases = self.no_bases
        else:
            more = self._after_base(base)
            reached = [a | b if b else a for a, b in zip(own, more, strict=True)]
            bases = self._begun(kind_before)
            if self.search:
                reached = [
                    a - self.base_list[b].places if a and b else a
                    for a, b in zip(reached, bases, strict=True)
                ]
            else:
                reached = [a | b for a, b in zip(reached, self.begun_places[kind_before], strict=True)]
                bases = self.no_bases
        if full < 0 or not mask:
            return [self._number(state) for state in zip(reached, bases, strict=True)]
        return [
            full if mask >> kind & 1 else self._number(state)
            for kind, state in zip(self.kinds, zip(reached, bases, strict=True), strict=True)
        ]

    def _begun(self, before: int) -> list[int]:
        """For each class, the base that a search adds when such a byte comes behind one of kind `before`."""
        known = self.begun.get(before)
        if known is None:
            places = self.begun_places[before] = self._by_class(self.g.first[before])
            known = self.begun[before] = [
                self._base(found, self.same_kind[kind])
                for found, kind in zip(places, self.kinds, strict=True)
            ]
        return known
