"""The operations of an automaton as kernels read them.

Most do nothing, note where a match may begin, or give one match: those are a few words, which the kernel
obeys without a branch. The others are lists of instructions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from trident_query.sequence.automaton import EMPTY_MATCH, OPERATIONS_MAX, Operation
from trident_query.sequence.kernels import Do, Word
from trident_query.sequence.question import SequenceError

#: Words of an operation: a cache line.
WORDS: Final = 8

Instructions = list[tuple[int, int, int]]


@dataclass
class Operations:
    """Numbered as they are met; 0 is all that do nothing. Registers of a key: its `groups`, then two for each
    of its `bundles`.

    `words` i64[n, 8]; `starts` i32[n + 1], where each one's instructions are in `ops` i32[:, 3].
    """

    known: list[Operation] = field(default_factory=lambda: [Operation()])
    numbers: dict[Operation, int] = field(default_factory=lambda: {Operation(): 0})
    groups: int = 1
    bundles: int = 0

    def __post_init__(self) -> None:
        self.encode()

    @property
    def size(self) -> int:
        """Registers of a key."""
        return self.groups + 2 * self.bundles

    def number(self, operation: Operation) -> int:
        """The operation's number; `groups` and `bundles` may grow by it."""
        known = self.numbers.get(operation)
        if known is not None:
            return known
        self.groups = max(self.groups, len(operation.groups))
        self.bundles = max(self.bundles, len(operation.bundles))
        if not self._instructions(operation):
            self.numbers[operation] = 0
            return 0
        if len(self.known) > OPERATIONS_MAX:
            raise SequenceError(f"more than {OPERATIONS_MAX:,} operations, the cap on sequences")
        made = self.numbers[operation] = len(self.known)
        self.known.append(operation)
        self.encode()
        return made

    def matches(self, number: int) -> int:
        """Final matches that an operation gives, bundles aside."""
        return sum(not isinstance(what, tuple) for what in self.known[number].emits)

    @property
    def single(self) -> bool:
        """Does `flags` say all of every operation met so far?"""
        return self.groups == 1 and self.bundles == 0 and not self.words[:, Word.LISTED].any()

    def flags(self, number: int) -> int:
        """What an operation does where a key has one register: 1, note the row at hand in it; 2, give a
        match; 4, that began at this row, not at the noted one; 8, that has rows.
        """
        words = self.words[number]
        bits = (words[word] & 1 for word in (Word.NOTES, Word.GIVES, Word.HERE, Word.ROWS))
        return sum(int(bit) << place for place, bit in enumerate(bits))

    def encode(self) -> None:
        coded = [self._instructions(operation) for operation in self.known]
        self.words = np.array([_words(one) for one in coded], np.int64)
        self.starts = np.cumsum([0, *map(len, coded)]).astype(np.int32)
        self.ops = np.array([each for one in coded for each in one], np.int32).reshape(-1, 3)

    def _register(self, bundle: int) -> int:
        return self.groups + 2 * bundle

    def _instructions(self, operation: Operation) -> Instructions:
        made: Instructions = []
        for what in operation.emits:
            if isinstance(what, tuple):
                made.append((Do.EMIT_BUNDLE, 0, self._register(what[1])))
            else:
                made.append((Do.EMIT_EMPTY, 0, 0) if what == EMPTY_MATCH else (Do.EMIT, 0, what))
        made += [(Do.DROP, 0, self._register(bundle)) for bundle in operation.drops]
        for new, source in enumerate(operation.groups):
            if source != new:
                made.append((Do.START, new, 0) if source < 0 else (Do.MOVE, new, source))
        for bundle, parts in enumerate(operation.bundles):
            if parts == (("bundle", bundle),):
                continue
            at = self._register(bundle)
            made.append((Do.NEW, at, 0))
            for part in parts:
                if isinstance(part, tuple):
                    made.append((Do.JOIN, at, self._register(part[1])))
                else:
                    made.append((Do.PUSH_EMPTY, at, 0) if part == EMPTY_MATCH else (Do.PUSH, at, part))
        return made


_GIVES: Final = (Do.EMIT, Do.EMIT_EMPTY)


def _words(instructions: Instructions) -> list[int]:
    """The words of an operation that gives at most one match, notes at most one start, and does no more; else
    LISTED."""
    made = [0] * WORDS
    gives = [each for each in instructions if each[0] in _GIVES]
    notes = [each for each in instructions if each[0] == Do.START]
    if len(gives) > 1 or len(notes) > 1 or len(gives) + len(notes) < len(instructions):
        made[Word.LISTED] = 1
        return made
    for what, _, source in gives:
        here = what == Do.EMIT_EMPTY or source < 0
        made[Word.GIVES], made[Word.ROWS] = 1, int(what == Do.EMIT)
        made[Word.HERE], made[Word.SOURCE] = (-1, 0) if here else (0, source)
    for _, target, _ in notes:
        made[Word.NOTES], made[Word.TARGET] = -1, target
    return made
