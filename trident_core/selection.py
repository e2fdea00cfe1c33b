"""Selections: "(a or b) and not c", over bits of u64 masks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.errors import UsageError

#: Nesting of parentheses and of "not".
DEPTH_MAX: Final = 100
LENGTH_MAX: Final = 10_000

_TOKEN: Final = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*|[()]|$)")
_WORDS: Final = ("and", "or", "not")

#: ("name", bit) | ("not", tree) | ("and" | "or", trees)
Tree = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """A parsed selection."""

    text: str
    tree: Tree

    def of(self, masks: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """bool[n]: which masks (u64[n]) are selected."""
        return _of(self.tree, masks)

    def takes_nothing_met(self) -> bool:
        """Whether an event that meets none of the criteria is selected."""
        return bool(self.of(np.zeros(1, np.uint64))[0])


def _of(tree: Tree, masks: NDArray[np.uint64]) -> NDArray[np.bool_]:
    match tree:
        case ("name", bit):
            return (masks >> np.uint64(bit) & np.uint64(1)).astype(np.bool_)
        case ("not", inner):
            return ~_of(inner, masks)
        case (word, parts):
            combine = np.logical_and if word == "and" else np.logical_or
            found = _of(parts[0], masks)
            for part in parts[1:]:
                found = combine(found, _of(part, masks))
            return found
    raise AssertionError(f"not a tree: {tree!r}")


def parse_selection(text: str, names: Sequence[str]) -> Selection:
    """Names with not, and, or (in this order of precedence) and parentheses. Bit i is names[i].

    Raises UsageError, with the offset, for an unknown name, a word out of place, or what is nested too deep.
    """
    for name in names:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or name in _WORDS:
            raise UsageError(f"{name!r} is no name", hint="letters, digits and _, and not and, or, not")
    if len(text) > LENGTH_MAX:
        raise UsageError(f"a selection of {len(text):,} characters", hint=f"at most {LENGTH_MAX:,}")
    parser = _Parser(text, {name: bit for bit, name in enumerate(names)})
    tree = parser.either(0)
    if parser.word:
        raise parser.error(f"{parser.word!r} is out of place")
    return Selection(text, tree)


class _Parser:
    def __init__(self, text: str, bits: dict[str, int]) -> None:
        self.text, self.bits = text, bits
        self.at = self.start = 0
        self.word = ""
        self.advance()

    def error(self, message: str) -> UsageError:
        return UsageError(
            f"{message} at offset {self.start} of {self.text[:200]!r}",
            hint="write names with and, or, not and parentheses",
        )

    def advance(self) -> None:
        found = _TOKEN.match(self.text, self.at)
        if found is None:
            self.start = self.at + len(self.text[self.at :]) - len(self.text[self.at :].lstrip())
            raise self.error(f"{self.text[self.start]!r} is no word of a selection")
        self.start, self.at, self.word = found.start(1), found.end(), found[1]

    def either(self, depth: int) -> Tree:
        parts = [self.both(depth)]
        while self.word == "or":
            self.advance()
            parts.append(self.both(depth))
        return ("or", parts) if len(parts) > 1 else parts[0]

    def both(self, depth: int) -> Tree:
        parts = [self.one(depth)]
        while self.word == "and":
            self.advance()
            parts.append(self.one(depth))
        return ("and", parts) if len(parts) > 1 else parts[0]

    def one(self, depth: int) -> Tree:
        if depth > DEPTH_MAX:
            raise self.error(f"nested deeper than {DEPTH_MAX}")
        word = self.word
        if word == "not":
            self.advance()
            return ("not", self.one(depth + 1))
        if word == "(":
            self.advance()
            inner = self.either(depth + 1)
            if self.word != ")":
                raise self.error("a parenthesis is not closed")
            self.advance()
            return inner
        if word not in self.bits:
            what = f"no criterion {word!r}" if word and word not in (*_WORDS, ")") else "a name is missing"
            raise self.error(what)
        self.advance()
        return ("name", self.bits[word])
