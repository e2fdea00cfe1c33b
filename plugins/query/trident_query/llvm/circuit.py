"""A pattern as a circuit over the byte planes of a block of fixed-width values.

Glushkov's positions (V. M. Glushkov, "The abstract theory of automata", Russian Math. Surveys 16(5), 1961)
are unrolled along the value: position p after byte i is

    node(p, i) = byte i is of p's class AND
                 (a match may begin before byte i with p  OR  node(q, i - 1) of a position q before p)

one AND/OR of masks, each for as many records as a vector has bytes. There are no states, so nothing blows up:
at most (edges x width) operations. Nodes are made on demand, backwards from where a match ends, so those that
cannot lead to a match, or cannot be reached, are never made; equal ones are shared, prefixes of alternatives
among them.

A match before the end of the value is a match, so what follows an accepting position is cut, too. Of trimmed
values only the bytes before the padding at the end can be read: a class without space and NUL says so itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Final

from trident_query.ast import ByteSet
from trident_query.glushkov import Glushkov
from trident_query.kinds import ALL_KINDS, KIND_OF, KINDS, OUTSIDE
from trident_query.llvm.code import FALSE, TRUE, Code, RefusedError

PADDING: Final[ByteSet] = frozenset(b" \0")

#: Edges of the automaton times bytes of a value: what is looked at while a circuit is made.
STEPS_MAX: Final = 40_000
#: Bytes of a value. The planes of longer ones do not stay in registers and first-level cache.
WIDTH_MAX: Final = 64


class Circuit:
    """The masks of one block. `plane(i)` is the vector of byte i; `found()` the mask of what matches.

    Raises RefusedError, by cap: width, steps (here), operations (while it is made).
    """

    def __init__(
        self, code: Code, automaton: Glushkov, width: int, plane: Callable[[int], str], *, raw: bool
    ) -> None:
        if width > WIDTH_MAX:
            raise RefusedError(f"values of {width} bytes; circuits are for up to {WIDTH_MAX}", cap="width")
        self.code, self.automaton, self.width, self.plane, self.raw = code, automaton, width, plane, raw
        self._nodes: dict[tuple[int, int], str] = {}
        self._tails: dict[int, str] = {}
        #: By position: the kinds of byte behind which a match may begin there, and what may come before it.
        self._first: dict[int, int] = {}
        self._sources: dict[int, list[int]] = {}
        for kind, begins in enumerate(automaton.first):
            for position in begins:
                self._first[position] = self._first.get(position, 0) | 1 << kind
        #: The fewest bytes that a match has read before each position; of those that a value has room for.
        self._soonest = self._reach()

    def _reach(self) -> dict[int, int]:
        """Breadth first, as deep as a value is wide; fills in what may come before each position."""
        automaton, width = self.automaton, self.width
        soonest = dict.fromkeys(self._first, 0)
        reached = list(soonest)
        edges = len(reached)
        for source in reached:  # grows
            # What follows where a match has ended anyway needs no look.
            if soonest[source] + 1 >= width or automaton.accepts[source] == ALL_KINDS:
                continue
            follow = automaton.follow[source]
            edges += len(follow)
            if edges * width > STEPS_MAX:
                raise RefusedError(
                    f"more than {STEPS_MAX // width:,} steps between positions, for each of {width} bytes",
                    cap="steps",
                )
            for target in follow:
                self._sources.setdefault(target, []).append(source)
                if target not in soonest:
                    soonest[target] = soonest[source] + 1
                    reached.append(target)
        return soonest

    # --- the result -----------------------------------------------------------------------------------------

    def found(self) -> str:
        """Which values the pattern occurs in."""
        mask = self._empty()
        for index in range(self.width):
            for position, soonest in self._soonest.items():
                kinds = self.automaton.accepts[position]
                if mask == TRUE:
                    return mask
                if kinds and soonest <= index:
                    mask = self.code.either(mask, self._ends(position, index, kinds))
        return mask

    def _empty(self) -> str:
        """Which values the empty match occurs in."""
        code, empty = self.code, self.automaton.empty
        mask = FALSE
        for place in range(self.width + 1) if any(empty) else ():
            for after in set(empty) - {0}:
                before = sum(1 << kind for kind in range(KINDS) if empty[kind] == after)
                holds = code.both(self._before(before, place), self._after(after, place))
                mask = code.either(mask, code.both(holds, self._within(place)))
            if mask == TRUE:
                break
        return mask

    def _ends(self, position: int, index: int, kinds: int) -> str:
        """A match ends with `position` at byte `index`, before a byte of `kinds`."""
        if kinds == ALL_KINDS:
            return self._node(position, index)
        if kinds == 1 << OUTSIDE and not self.raw:
            # The last byte of a text is no padding.
            values = self.automaton.values[position] - PADDING
            entered = self._entered(position, index) if values else FALSE
            node = entered
            if entered != FALSE:
                node = self.code.both(self.code.member(self.plane(index), values), entered)
        else:
            node = self._node(position, index)
        return FALSE if node == FALSE else self.code.both(node, self._after(kinds, index + 1))

    def _node(self, position: int, index: int) -> str:
        """`position` has read byte `index`."""
        if self._soonest[position] > index:
            return FALSE  # nothing can have come so far
        key = position, index
        if key not in self._nodes:
            entered = self._entered(position, index)
            mask = entered
            if entered != FALSE:
                values = self.automaton.values[position]
                mask = self.code.both(self.code.member(self.plane(index), values), entered)
                mask = self.code.both(mask, self._inside(index, values))
            self._nodes[key] = mask
        return self._nodes[key]

    def _entered(self, position: int, index: int) -> str:
        """Something before `position` has read what is before byte `index`, or a match begins there."""
        mask = FALSE
        if position in self._first:
            mask = self._before(self._first[position], index)
        for source in self._sources.get(position, ()) if index else ():
            if mask == TRUE:
                break
            mask = self.code.either(mask, self._node(source, index - 1))
        return mask

    # --- the text in its padding ----------------------------------------------------------------------------

    def _tail(self, index: int) -> str:
        """All bytes from `index` on are padding (space and NUL, which differ in one bit only)."""
        if self.raw or index >= self.width:
            return TRUE if index >= self.width else FALSE
        union = self._union(index)
        return self.code.compare("eq", self.code.with_byte("or", union, 0x20), 0x20)

    def _union(self, index: int) -> str:
        if index not in self._tails:
            plane = self.plane(index)
            last = index == self.width - 1
            self._tails[index] = plane if last else self.code.binary("or", plane, self._union(index + 1))
        return self._tails[index]

    def _inside(self, index: int, values: ByteSet) -> str:
        """Byte `index`, which is of `values`, belongs to the text."""
        return TRUE if self.raw or not values & PADDING else self.code.inverse(self._tail(index))

    def _within(self, place: int) -> str:
        """The text is at least so long."""
        return TRUE if self.raw or place == 0 else self.code.inverse(self._tail(place - 1))

    # --- neighbours -----------------------------------------------------------------------------------------

    def _before(self, kinds: int, place: int) -> str:
        """What comes before `place` is of these kinds."""
        if place == 0:
            return TRUE if kinds >> OUTSIDE & 1 else FALSE
        return self.code.member(self.plane(place - 1), _bytes_of(kinds))

    def _after(self, kinds: int, place: int) -> str:
        """What comes after `place`, which is not behind the end of the text, is of these kinds."""
        if kinds == ALL_KINDS:
            return TRUE
        code, values = self.code, _bytes_of(kinds)
        mask = FALSE
        if place < self.width:
            mask = code.both(code.member(self.plane(place), values), self._inside(place, values))
        return code.either(mask, self._tail(place)) if kinds >> OUTSIDE & 1 else mask


@cache
def _bytes_of(kinds: int) -> ByteSet:
    return frozenset(byte for byte in range(256) if kinds >> KIND_OF[byte] & 1)
