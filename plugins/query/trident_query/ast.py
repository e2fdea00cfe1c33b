"""Syntax trees of the dialect, and the sets of bytes its classes stand for.

The trees are small on purpose: six kinds of node, no flags, no captures. Case folding, `.` and POSIX classes
are sets of bytes by the time a tree exists, so every engine starts from the same meaning (docs/dialect.md).
Build them with `chain`, `choice` and `repeat`, which also count sizes; other languages than that of bytes can
use letters of their own, 0 to 255, in the place of bytes (without assertions on words and lines).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Final

ByteSet = frozenset[int]


class At(IntFlag):
    """What an assertion demands of its position. Texts are bytes; a line ends before each LF (0x0A)."""

    TEXT_START = 1
    TEXT_END = 2
    LINE_START = 4  # at the start of the text, or after a LF
    LINE_END = 8  # at the end of the text, or before a LF
    WORD_BOUNDARY = 16  # between a word byte and what is none; outside the text there are no word bytes
    NOT_WORD_BOUNDARY = 32  # everywhere else, in the empty text too


@dataclass(frozen=True, slots=True)
class Empty:
    """Matches the empty string."""

    size: int = 0
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class OneOf:
    """Matches one byte of `values`; an empty set matches nothing."""

    values: ByteSet
    size: int = 1
    nullable: bool = False


@dataclass(frozen=True, slots=True)
class Assertion:
    """Matches the empty string where `at` (one flag) holds."""

    at: At
    size: int = 1
    nullable: bool = True


@dataclass(frozen=True, slots=True)
class Chain:
    """Matches `items` one after the other; two or more."""

    items: tuple[Node, ...]
    size: int
    nullable: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """Matches any of `items`; two or more. Leftmost-first matching prefers the ones that come first."""

    items: tuple[Node, ...]
    size: int
    nullable: bool


@dataclass(frozen=True, slots=True)
class Repeat:
    """Matches `item` `low` to `high` times; `high` None is unbounded.

    Leftmost-first matching prefers more of them, or, if `lazy`, fewer. `span`: where it stands in the
    pattern, as [start, end) of its characters, for messages; (0, 0) where it is not known.
    """

    item: Node
    low: int
    high: int | None
    size: int
    nullable: bool
    lazy: bool = False
    span: tuple[int, int] = field(default=(0, 0), compare=False)


#: `size` of a node is the number of states that its Thompson automaton has; the cap of the dialect is on it.
#: `nullable`: it can match the empty string (at a place where its assertions hold).
Node = Empty | OneOf | Assertion | Chain | Choice | Repeat

EMPTY: Final = Empty()


def chain(items: Sequence[Node]) -> Node:
    """`items` in a row; no node for a single one, EMPTY for none."""
    kept = tuple(item for item in items if item is not EMPTY)
    if len(kept) <= 1:
        return kept[0] if kept else EMPTY
    return Chain(kept, sum(item.size for item in kept), all(item.nullable for item in kept))


def choice(items: Sequence[Node]) -> Node:
    """Any of `items` (at least one), the first ones preferred."""
    if len(items) == 1:
        return items[0]
    nullable = any(item.nullable for item in items)
    return Choice(tuple(items), sum(item.size for item in items) + 1, nullable)


def repeat(
    item: Node, low: int, high: int | None, *, lazy: bool = False, span: tuple[int, int] = (0, 0)
) -> Node:
    """`item` repeated. Only a repeat of nothing is simplified, so that sizes say what an automaton costs."""
    if item is EMPTY or high == 0:
        return EMPTY
    if high is None:
        # What may be empty is repeated as (?:item+)?, which costs one state more: see nfa._star.
        size = max(low, 1) * item.size + 1 + (low == 0 and item.nullable)
    else:
        size = high * item.size + (high - low)
    return Repeat(item, low, high, size, low == 0 or item.nullable, lazy, span)


# --- sets of bytes ------------------------------------------------------------------------------------------


def _span(first: str, last: str) -> ByteSet:
    return frozenset(range(ord(first), ord(last) + 1))


ALL_BYTES: Final[ByteSet] = frozenset(range(256))
NEWLINE: Final[ByteSet] = frozenset(b"\n")
ONE_BYTE: Final[tuple[ByteSet, ...]] = tuple(frozenset((value,)) for value in range(256))

UPPER: Final = _span("A", "Z")
LOWER: Final = _span("a", "z")
DIGIT: Final = _span("0", "9")
WORD: Final = UPPER | LOWER | DIGIT | frozenset(b"_")
SPACE: Final[ByteSet] = frozenset(b"\t\n\v\f\r ")

#: `\d` and its kin.
SHORTHANDS: Final[dict[str, ByteSet]] = {
    "d": DIGIT, "D": ALL_BYTES - DIGIT,
    "w": WORD, "W": ALL_BYTES - WORD,
    "s": SPACE, "S": ALL_BYTES - SPACE,
}  # fmt: skip

#: `[[:alpha:]]` and its kin: POSIX in the C locale, and `word` and `ascii` as RE2 has them.
POSIX: Final[dict[str, ByteSet]] = {
    "alnum": UPPER | LOWER | DIGIT,
    "alpha": UPPER | LOWER,
    "ascii": frozenset(range(128)),
    "blank": frozenset(b"\t "),
    "cntrl": frozenset(range(32)) | {127},
    "digit": DIGIT,
    "graph": frozenset(range(33, 127)),
    "lower": LOWER,
    "print": frozenset(range(32, 127)),
    "punct": frozenset(range(33, 127)) - UPPER - LOWER - DIGIT,
    "space": SPACE,
    "upper": UPPER,
    "word": WORD,
    "xdigit": DIGIT | _span("A", "F") | _span("a", "f"),
}


def fold(values: Iterable[int]) -> ByteSet:
    """`values`, and the other case of each ASCII letter among them."""
    kept = frozenset(values)
    return kept | {value ^ 0x20 for value in kept if value in UPPER or value in LOWER}
