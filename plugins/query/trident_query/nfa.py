"""Thompson's automaton of a pattern: states that read a byte of a set, and free ones.

K. Thompson, "Regular Expression Search Algorithm", CACM 11(6), 1968. A state either reads one byte of a set
and goes on, or is free: it goes on to any of its successors without reading, if its assertion holds there.
Successors are in order of preference, which only leftmost-first matching asks for.

A set of states is an integer: bit q is state q, union is |, intersection is &. State 0 accepts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from trident_query.ast import Assertion, ByteSet, Chain, Choice, Empty, Node, OneOf, Repeat

ACCEPT: Final = 0


@dataclass(slots=True)
class NFA:
    """States by number. `reads[q]` is None for a free state; `needs[q]` is its assertion, 0 for none."""

    start: int = ACCEPT
    reads: list[ByteSet | None] = field(default_factory=lambda: [None])
    needs: list[int] = field(default_factory=lambda: [0])
    outs: list[list[int]] = field(default_factory=lambda: [[]])

    def add(self, reads: ByteSet | None, outs: list[int], needs: int = 0) -> int:
        self.reads.append(reads)
        self.needs.append(needs)
        self.outs.append(outs)
        return len(self.reads) - 1

    def __len__(self) -> int:
        return len(self.reads)


def build(node: Node) -> NFA:
    """The automaton of a tree: `node.size` states and the accepting one, built from the end backwards."""
    nfa = NFA()
    nfa.start = _build(nfa, node, ACCEPT)
    return nfa


def _build(nfa: NFA, node: Node, then: int) -> int:
    """Add the states of `node`, which go on to `then`; return the state where it begins."""
    match node:
        case Empty():
            return then
        case OneOf(values):
            return nfa.add(values, [then])
        case Assertion(at):
            return nfa.add(None, [then], needs=int(at))
        case Chain(items):
            for item in reversed(items):
                then = _build(nfa, item, then)
            return then
        case Choice(items):
            return nfa.add(None, [_build(nfa, item, then) for item in items])
        case Repeat(item, 0, None):
            return _star(nfa, node, then)
        case Repeat(item, low, None):
            then = _plus(nfa, node, then)
            for _ in range(low - 1):
                then = _build(nfa, item, then)
            return then
        case Repeat(item, low, int(high)):
            out = then
            for _ in range(high - low):
                then = _fork(nfa, _build(nfa, item, then), out, lazy=node.lazy)
            for _ in range(low):
                then = _build(nfa, item, then)
            return then
    raise AssertionError(f"not a node: {node!r}")


def _fork(nfa: NFA, more: int, done: int, *, lazy: bool) -> int:
    """A free state that prefers `more`, or `done` if lazy."""
    return nfa.add(None, [done, more] if lazy else [more, done])


def _plus(nfa: NFA, node: Repeat, then: int) -> int:
    """item+: the item, then a fork back to it."""
    loop = nfa.add(None, [])
    again = _build(nfa, node.item, loop)
    nfa.outs[loop] = [then, again] if node.lazy else [again, then]
    return again


def _star(nfa: NFA, node: Repeat, then: int) -> int:
    """item*: a fork before the item. Where the item may be empty, (?:item+)?, so that an empty turn goes on
    to what follows, not back to a fork that was tried already: the preferences of Perl, RE2 and Rust."""
    if node.item.nullable:
        return _fork(nfa, _plus(nfa, node, then), then, lazy=node.lazy)
    loop = nfa.add(None, [])
    again = _build(nfa, node.item, loop)
    nfa.outs[loop] = [then, again] if node.lazy else [again, then]
    return loop


# --- sets of states -----------------------------------------------------------------------------------------


_BITS: Final = [[bit for bit in range(8) if byte >> bit & 1] for byte in range(256)]


def members(states: int) -> Iterator[int]:
    """The states of a set, ascending."""
    if states.bit_count() < 256:
        while states:
            lowest = states & -states
            yield lowest.bit_length() - 1
            states ^= lowest
        return
    # Each turn above copies the whole set: quadratic for a large one.
    for group, byte in enumerate(states.to_bytes(states.bit_length() // 8 + 1, "little")):
        for bit in _BITS[byte]:
            yield group * 8 + bit


def as_set(states: Iterable[int]) -> int:
    """The inverse of `members`, in any order."""
    known = list(states)
    if len(known) < 256:
        return sum({1 << state for state in known})
    bits = bytearray(max(known) // 8 + 1)
    for state in known:
        bits[state >> 3] |= 1 << (state & 7)
    return int.from_bytes(bits, "little")
