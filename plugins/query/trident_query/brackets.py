"""Bracketed classes: `[…]` -> a set of bytes."""

from __future__ import annotations

from trident_query.ast import ALL_BYTES, POSIX, SHORTHANDS, ByteSet, fold
from trident_query.reader import Reader

_DISAGREE = "dialects disagree on it: escape it with \\ where it is meant as a character"


def parse_class(reader: Reader, *, ignore_case: bool) -> ByteSet:
    """The bytes of a class; the cursor is behind its `[` and moves behind its `]`.

    Case is folded before negation: `(?i)[^a]` is neither a nor A, `(?i)[[:^upper:]]` is no letter at all.
    Newline is a byte like any other here.
    """
    start = reader.at - 1
    _refuse_bare_posix(reader, start)
    negated = reader.take("^")
    values: set[int] = set()
    first = True
    while True:
        if not reader.more():
            raise reader.error("the class is not closed", at=start, hint="add ], or write \\[ for a bracket")
        if not first and reader.take("]"):
            break
        values |= _item(reader, first=first, ignore_case=ignore_case)
        first = False
    folded = fold(values) if ignore_case else frozenset(values)
    return ALL_BYTES - folded if negated else folded


def _item(reader: Reader, *, first: bool, ignore_case: bool) -> ByteSet:
    """One item: a POSIX class, a shorthand, a byte, or a range of bytes."""
    start = reader.at
    if reader.sees("&&") or reader.sees("~~") or (reader.sees("--") and not first):
        raise reader.refused("a set operation", shown=" in a class", at=start, hint=_DISAGREE)
    if reader.sees("[:"):
        return _posix(reader, ignore_case=ignore_case)
    low = _one(reader)
    if not reader.sees("-") or reader.sees("-]"):
        return low if isinstance(low, frozenset) else frozenset((low,))
    reader.take("-")
    if not reader.more():
        return frozenset()  # not closed: the caller says so
    high = -1 if reader.sees("[:") else _one(reader)
    if isinstance(low, frozenset) or isinstance(high, frozenset) or high < 0:
        raise reader.error(
            "a range must end in single bytes", at=start, hint="write a literal - first, last or as \\-"
        )
    if high < low:
        raise reader.error(f"the range {reader.pattern[start : reader.at]} is reversed", at=start)
    return frozenset(range(low, high + 1))


def _one(reader: Reader) -> int | ByteSet:
    """A byte, or the set of a shorthand such as `\\d`."""
    start = reader.at
    char = reader.next()
    if char == "\\":
        following = reader.pattern[reader.at : reader.at + 1]
        if following in SHORTHANDS:
            reader.next()
            return SHORTHANDS[following]
        if following and following in "bBAz":
            hint = "write \\x08 for a backspace" if following == "b" else "take it out of the class"
            raise reader.error(f"\\{following} is an assertion, not a byte", at=start, hint=hint)
        return reader.byte_escape()
    if char == "[" and reader.more() and reader.pattern[reader.at] in ".=":
        raise reader.refused("a POSIX collating element", at=start, hint="write \\[")
    raw = char.encode("utf-8", "surrogateescape")
    if len(raw) > 1:
        raise reader.error(
            f"{char} is {len(raw)} bytes, and a class holds single bytes",
            at=start,
            hint=f"use an alternation, as in (?:[ab]|{char})",
        )
    return raw[0]


def _posix(reader: Reader, *, ignore_case: bool) -> ByteSet:
    start = reader.at
    end = reader.pattern.find(":]", start + 2)
    name = reader.pattern[start + 2 : end] if end >= 0 else ""
    known = POSIX.get(name.removeprefix("^"))
    if known is None:
        raise reader.error(
            "not a POSIX class",
            at=start,
            hint=f"there are {', '.join(POSIX)}; write \\[ for a bracket",
        )
    reader.at = end + 2
    if ignore_case:
        known = fold(known)
    return ALL_BYTES - known if name.startswith("^") else known


def _refuse_bare_posix(reader: Reader, start: int) -> None:
    """`[:alpha:]` without its second pair of brackets is nearly always a slip; refused, as PCRE does."""
    if not reader.sees(":"):
        return
    end = reader.pattern.find(":]", reader.at + 1)
    if end >= 0 and reader.pattern[reader.at + 1 : end].removeprefix("^") in POSIX:
        raise reader.error("a POSIX class stands inside a class", at=start, hint="write [[:alpha:]]")
