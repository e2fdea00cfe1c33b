"""Patterns by chance, written in our dialect and in Python's; and spans found the slow and certain way."""

from __future__ import annotations

import re
from typing import Any, Final

from hypothesis import strategies as st

#: ("text", ours, python) | ("group", tree) | ("chain" | "choice", trees) | ("repeat", tree, suffix)
Tree = tuple[Any, ...]

_ATOMS: Final = (
    ("a", "a"), ("b", "b"), ("A", "A"), ("ab", "ab"), (".", "."), ("[ab]", "[ab]"), ("[^a]", "[^a]"),
    ("[a-z]", "[a-z]"), ("\\w", "\\w"), ("\\W", "\\W"), ("\\d", "\\d"), ("\\n", "\\n"), ("\\x62", "\\x62"),
    ("[[:upper:]]", "[A-Z]"), ("", ""),
)  # fmt: skip
_ANCHORS: Final = (("^", "^"), ("$", "$"), ("\\A", "\\A"), ("\\z", "\\Z"), ("\\b", "\\b"))
_SUFFIXES: Final = ("*", "+", "?", "{2}", "{0,2}", "{1,3}", "{2,}", "{0}", "*?", "+?", "??", "{1,2}?")


def trees(*, anchors: bool) -> st.SearchStrategy[Tree]:
    """Small patterns of what both dialects have."""
    atoms = st.sampled_from(_ATOMS + (_ANCHORS if anchors else ())).map(lambda pair: ("text", *pair))

    def grow(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
        several = st.lists(inner, min_size=2, max_size=3).map(tuple)
        return st.one_of(
            st.tuples(st.just("chain"), several),
            st.tuples(st.just("chain"), several),
            st.tuples(st.just("choice"), several),
            st.tuples(st.just("repeat"), inner, st.sampled_from(_SUFFIXES)),
        )

    return st.recursive(atoms, grow, max_leaves=7)


def ours(tree: Tree) -> str:
    return _write(tree, 1)


def python(tree: Tree, flags: str) -> re.Pattern[bytes]:
    """The pattern for Python's re over bytes. `$` without flag m becomes \\Z: Python's stops before a last
    LF."""
    text = _write(tree, 2)
    if "m" not in flags:
        text = re.sub(r"(?<!\\)\$", r"\\Z", text)
    bits = 0
    for letter in flags:
        bits |= {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}[letter]
    return re.compile(text.encode(), bits)


def _write(tree: Tree, which: int) -> str:
    match tree:
        case ("text", *pair):
            return str(pair[which - 1])
        case ("chain", parts):
            return "".join(_write(part, which) for part in parts)
        case ("choice", parts):
            return "(?:" + "|".join(_write(part, which) for part in parts) + ")"
        case ("repeat", inner, suffix):
            return f"(?:{_write(inner, which)}){suffix}"
    raise ValueError(f"not a tree: {tree!r}")


def spans(pattern: re.Pattern[bytes], text: bytes) -> list[tuple[int, int]]:
    """Leftmost-longest, non-overlapping spans of a pattern without assertions, asked of every substring."""
    found: list[tuple[int, int]] = []
    at = 0
    while at <= len(text):
        end = next((e for e in range(len(text), at - 1, -1) if pattern.fullmatch(text, at, e)), None)
        if end is None or (end == at and found and found[-1][1] == at):
            at += 1
            continue
        found.append((at, end))
        at = max(end, at + 1) if end == at else end
    return found
