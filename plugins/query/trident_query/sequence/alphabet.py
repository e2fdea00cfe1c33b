"""What kernels look up: the letter of a row's symbol, and the entry of a state and a letter."""

from __future__ import annotations

from typing import Final

import numpy as np

from trident_query.sequence.question import SequenceError

#: Most entries of a table, over states and letters.
TABLE_MAX: Final = 1 << 24
#: Most distinct combinations of conditions that rows satisfy.
LETTERS_MAX: Final = 1 << 12
#: Conditions whose combinations are the symbols.
BITS_MAX: Final = 20


class Alphabet:
    """Letters of the automata: combinations of conditions, numbered as they are met. Letter 0 stands for the
    end of a partition and, in `of`, for a symbol that was not met yet.
    """

    def __init__(self, bits: int) -> None:
        if bits > BITS_MAX:
            raise SequenceError(f"{bits} conditions, more than {BITS_MAX}, the cap on sequences")
        self.of = np.zeros(1 << bits, np.uint16)
        self.symbols: list[int] = [-1]

    def add(self, symbol: int) -> None:
        if len(self.symbols) >= LETTERS_MAX:
            raise SequenceError(
                f"more than {LETTERS_MAX:,} combinations of conditions, the cap on sequences",
                hint="use fewer conditions that hold together",
            )
        self.of[symbol] = len(self.symbols)
        self.symbols.append(symbol)


class TypeAlphabet(Alphabet):
    """The same for symbols that are type letters: `bits` says which conditions each of the 256 satisfies."""

    def __init__(self, bits: list[int]) -> None:
        super().__init__(8)
        self.bits = bits

    def add(self, symbol: int) -> None:
        letters = {bits: letter for letter, bits in enumerate(self.symbols)}
        letter = letters.get(self.bits[symbol])
        if letter is None:
            super().add(symbol)
            self.symbols[-1] = self.bits[symbol]
        else:
            self.of[symbol] = letter


class Table:
    """Entries by state and letter, -1 where the automaton was not asked yet; grows in both directions.

    `entries`: operation << 16 | state; those of letter 0, which no row has, stay -1. `closing`: by state,
    that of the partition's end. `counts`: matches << 16 | state, all that counting needs. `singles`:
    flags << 16 | state.
    """

    def __init__(self) -> None:
        self.width = 8
        self.entries = np.full(16 * self.width, -1, np.int32)
        self.counts, self.singles = self.entries.copy(), self.entries.copy()
        self.closing = np.full(16, -1, np.int32)

    def put(
        self, state: int, letter: int, operation: int, following: int, matches: int = 0, flags: int = 0
    ) -> None:
        if letter >= self.width:
            self._resize(len(self.entries) // self.width, 2 * letter)
        if state * self.width + letter >= len(self.entries):
            self._resize(2 * state, self.width)
        self.entries[state * self.width + letter] = operation << 16 | following
        self.counts[state * self.width + letter] = matches << 16 | following
        self.singles[state * self.width + letter] = flags << 16 | following

    def close(self, state: int, operation: int) -> None:
        """A partition that ends in a state."""
        self.cover(state + 1)
        self.closing[state] = operation << 16

    def cover(self, states: int) -> None:
        """Room for the rows of so many states."""
        if states * self.width > len(self.entries):
            self._resize(2 * states, self.width)

    def _resize(self, states: int, width: int) -> None:
        if states * width > TABLE_MAX:
            raise SequenceError(f"a table of more than {TABLE_MAX:,} entries, the cap on sequences")
        for name in ("entries", "counts", "singles"):
            made = np.full((states, width), -1, np.int32)
            old = getattr(self, name).reshape(-1, self.width)
            made[: len(old), : self.width] = old
            setattr(self, name, made.reshape(-1))
        closing = np.full(states, -1, np.int32)
        closing[: len(self.closing)] = self.closing
        self.closing = closing
        self.width = width
