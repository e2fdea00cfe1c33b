"""The front end that every engine shares: a pattern of the dialect (docs/dialect.md) -> its syntax tree."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from trident_core.errors import UsageError
from trident_query.ast import (
    ALL_BYTES,
    NEWLINE,
    ONE_BYTE,
    SHORTHANDS,
    Assertion,
    At,
    Node,
    OneOf,
    chain,
    choice,
    fold,
    repeat,
)
from trident_query.brackets import parse_class
from trident_query.limits import DEFAULT, LimitError
from trident_query.reader import Reader

#: The dialect's own caps (`trident_query.limits`): bytes of a pattern in UTF-8 (room for an alternation of
#: 20,000 symbols and more), the greatest n and m of {n,m} (as in RE2), nesting of groups, states of
#: Thompson's automaton with bounded repeats written out.
PATTERN_BYTES_MAX: Final = DEFAULT.pattern_bytes
REPEAT_MAX: Final = DEFAULT.repeat
DEPTH_MAX: Final = DEFAULT.depth
STATES_MAX: Final = DEFAULT.nodes

FLAGS: Final = "imsx"

_REPEAT = re.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_FLAG_GROUP = re.compile(r"\(\?([a-zA-Z]*)(-?)([a-zA-Z]*)([:)])")
_NAMED_GROUP = re.compile(r"\(\?P?<([^>)]*)(>?)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_RECURSION = re.compile(r"\(\?(?:R|[+-]?[0-9]+|&\w*|P>\w*)\)?")

#: Groups that other dialects have and this one refuses: how it starts -> (what it is, what to do).
_REFUSED: Final[tuple[tuple[str, str, str], ...]] = (
    ("(?=", "a look-ahead", "match the rest too, and cut it afterwards; or AND two searches"),
    ("(?!", "a negative look-ahead", "use a class such as [^…], or subtract one search from another"),
    ("(?<=", "a look-behind", "match what comes before too, and cut it afterwards"),
    ("(?<!", "a negative look-behind", "match what comes before with a class such as [^…]"),
    ("(?>", "an atomic group", "write (?:…); nothing here backtracks"),
    ("(?|", "a branch-reset group", "write (?:…); groups are not numbered"),
    ("(?[", "an extended class", "write one class that lists the bytes"),
    ("(?(", "a conditional", "write both cases as an alternation"),
    ("(?#", "a comment group", "use flag x and # … at the end of a line"),
    ("(?^", "a flag reset", "name the flags to clear, as in (?-i:…)"),
    ("(?C", "a callout", "leave it out"),
    ("(?P=", "a named back-reference", "patterns here cannot look back at what a group matched"),
)


@dataclass(slots=True)
class _Group:
    """An open group: where it opened, the flags to go back to, and what it has so far."""

    opened: int
    outer_flags: frozenset[str]
    branches: list[Node] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    size: int = 0

    def node(self) -> Node:
        return choice([*self.branches, chain(self.items)])


def parse(pattern: str, flags: str = "", *, full: bool = False) -> Node:
    """The tree of `pattern`. `flags`: letters of "imsx". `full`: as if it were `\\A(?:…)\\z`.

    Raises PatternError, with the byte offset in the pattern's UTF-8 form, for what the dialect does not have
    or does not allow, and UsageError for an unknown flag.
    """
    if not isinstance(pattern, str):
        raise UsageError(f"a pattern is a str, not {type(pattern).__name__}", hint="decode it, or use \\xHH")
    for letter in flags:
        if letter not in FLAGS:
            raise UsageError(f"unknown flag {letter!r}", hint="flags are letters of imsx")
    node = _Parser(pattern, frozenset(flags)).run()
    if full:
        return chain([Assertion(At.TEXT_START), node, Assertion(At.TEXT_END)])
    return node


class _Parser:
    """One pass over the pattern, with a stack of open groups instead of recursion."""

    def __init__(self, pattern: str, flags: frozenset[str]) -> None:
        self.reader = Reader(pattern)
        if len(pattern.encode("utf-8", "surrogateescape")) > PATTERN_BYTES_MAX:
            # A short stand-in: a message must stay one readable line.
            size = len(pattern.encode("utf-8", "surrogateescape"))
            raise LimitError("pattern_bytes", size, PATTERN_BYTES_MAX, pattern=pattern[:40])
        self.flags = flags
        self.names: set[str] = set()
        self.groups = [_Group(0, flags)]
        self.repeatable = False  # the last item may take a quantifier
        self.quantified = False  # the last item just took one
        self.item_start = 0  # where the last item begins

    def run(self) -> Node:
        reader = self.reader
        while True:
            if "x" in self.flags:
                self._skip_blanks()
            if not reader.more():
                break
            start = reader.at
            char = reader.next()
            if char in "*+?{":
                self._quantifier(char, start)
            elif char == "|":
                group = self.groups[-1]
                self._count(group, 0 if group.branches else 1, start)
                group.branches.append(chain(group.items))
                group.items = []
                self.repeatable = self.quantified = False
            elif char == "(":
                self._open(start)
            elif char == ")":
                self._close(start)
            else:
                self._add(self._atom(char), start)
        if len(self.groups) > 1:
            raise reader.error(
                "the group is not closed",
                at=self.groups[-1].opened,
                hint="add ), or write \\( for a parenthesis",
            )
        return self.groups[0].node()

    def _skip_blanks(self) -> None:
        """Flag x: white space and `# …` up to the end of the line mean nothing outside a class."""
        reader = self.reader
        while reader.more():
            if reader.pattern[reader.at] in " \t\n\v\f\r":
                reader.at += 1
            elif reader.sees("#"):
                end = reader.pattern.find("\n", reader.at)
                reader.at = len(reader.pattern) if end < 0 else end + 1
            else:
                return

    def _count(self, group: _Group, size: int, at: int) -> None:
        group.size += size
        if group.size > STATES_MAX:
            raise self.reader.limit("nodes", group.size, STATES_MAX, start=at)

    def _add(self, node: Node, at: int) -> None:
        group = self.groups[-1]
        self._count(group, node.size, at)
        group.items.append(node)
        self.repeatable, self.quantified, self.item_start = True, False, at

    # --- atoms ----------------------------------------------------------------------------------------------

    def _atom(self, char: str) -> Node:
        if char == ".":
            return OneOf(ALL_BYTES if "s" in self.flags else ALL_BYTES - NEWLINE)
        if char == "^":
            return Assertion(At.LINE_START if "m" in self.flags else At.TEXT_START)
        if char == "$":
            return Assertion(At.LINE_END if "m" in self.flags else At.TEXT_END)
        if char == "[":
            return OneOf(parse_class(self.reader, ignore_case="i" in self.flags))
        if char == "\\":
            return self._escape()
        return chain([self._literal(value) for value in char.encode("utf-8", "surrogateescape")])

    def _literal(self, value: int) -> Node:
        return OneOf(fold((value,)) if "i" in self.flags else ONE_BYTE[value])

    def _escape(self) -> Node:
        assertions = {
            "A": At.TEXT_START,
            "z": At.TEXT_END,
            "b": At.WORD_BOUNDARY,
            "B": At.NOT_WORD_BOUNDARY,
        }
        following = self.reader.pattern[self.reader.at : self.reader.at + 1]
        if following in assertions:
            self.reader.next()
            return Assertion(assertions[following])
        if following in SHORTHANDS:
            self.reader.next()
            return OneOf(SHORTHANDS[following])
        return self._literal(self.reader.byte_escape())

    # --- quantifiers ----------------------------------------------------------------------------------------

    def _quantifier(self, char: str, start: int) -> None:
        low, high = self._bounds(char, start)
        shown = self.reader.pattern[start : self.reader.at]
        if self.quantified:
            if char == "+":
                hint = "drop the +; nothing here backtracks, so it would change nothing"
                raise self.reader.refused("a possessive quantifier", at=start, hint=hint)
            raise self.reader.error(f"{shown} repeats a quantifier", at=start, hint="group it: (?:a*)*")
        if not self.repeatable:
            raise self.reader.error(
                f"nothing to repeat before {shown}", at=start, hint=f"write \\{char} for the character"
            )
        lazy = self.reader.take("?")
        group = self.groups[-1]
        item, item_start = group.items.pop(), self.item_start
        node = repeat(item, low, high, lazy=lazy, span=(item_start, self.reader.at))
        group.size += node.size - item.size
        if group.size > STATES_MAX:
            raise self.reader.limit("nodes", group.size, STATES_MAX, start=start, part_start=item_start)
        group.items.append(node)
        self.repeatable, self.quantified = False, True

    def _bounds(self, char: str, start: int) -> tuple[int, int | None]:
        if char != "{":
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        found = _REPEAT.match(self.reader.pattern, start)
        if found is None:
            raise self.reader.error(
                "{ does not start a repeat",
                at=start,
                hint="repeats are {n}, {n,} and {n,m}; write \\{ for a brace",
            )
        least, comma, most = found.groups()
        digits = max(len(number.lstrip("0")) for number in (least, most or ""))
        counts = [0 if digits > 9 else int(number) for number in (least, most or "0")]
        if digits > 9 or max(counts) > REPEAT_MAX:
            self.reader.at = found.end()
            value = max(counts) or 10**9
            raise self.reader.limit("repeat", value, REPEAT_MAX, start=start, part_start=self.item_start)
        low = counts[0]
        high = counts[1] if most else None if comma else low
        if high is not None and high < low:
            raise self.reader.error(f"the repeat {found[0]} is reversed", at=start)
        self.reader.at = found.end()
        return low, high

    # --- groups ---------------------------------------------------------------------------------------------

    def _open(self, start: int) -> None:
        """`(`, `(?:`, `(?flags:`, a named group, or `(?flags)`, which opens nothing."""
        if len(self.groups) > DEPTH_MAX:
            raise self.reader.limit("depth", len(self.groups), DEPTH_MAX, start=start)
        group = _Group(start, self.flags)
        if self.reader.sees("?") and not self._group_start(start):
            self.repeatable = self.quantified = False
            return
        if self.reader.sees("*") and self.reader.pattern[self.reader.at + 1 : self.reader.at + 2].isalpha():
            raise self.reader.refused("a verb", shown=" such as (*…)", at=start, hint="leave it out")
        self.groups.append(group)
        self.repeatable = self.quantified = False

    def _close(self, start: int) -> None:
        if len(self.groups) == 1:
            raise self.reader.error("no group to close", at=start, hint="write \\) for a parenthesis")
        group = self.groups.pop()
        self.flags = group.outer_flags
        self._add(group.node(), group.opened)

    def _group_start(self, start: int) -> bool:
        """Read what follows `(?`. False: it only set flags. Raises for what the dialect does not have."""
        reader = self.reader
        reader.at = start
        for prefix, what, hint in _REFUSED:
            if reader.sees(prefix):
                raise reader.refused(what, shown=f" {prefix}…)", at=start, hint=hint)
        if _RECURSION.match(reader.pattern, start):
            raise reader.refused("recursion", shown=" into a group", at=start, hint="write it out")
        if reader.sees("(?<") or reader.sees("(?P<"):
            self._named(start)
            return True
        found = _FLAG_GROUP.match(reader.pattern, start)
        if found is None:
            raise reader.error(
                "not a group of the dialect", at=start, hint="groups are (…), (?:…) and (?i:…)"
            )
        on, minus, off, end = found.groups()
        for letter in on + off:
            if letter not in FLAGS:
                hint = f"flags are i, m, s and x{'; every pattern is about bytes' if letter == 'u' else ''}"
                raise reader.error(
                    f"unknown flag {letter!r} in {found[0]}", at=start, hint=hint, construct="unknown flag"
                )
        if (minus and not off) or (end == ")" and not on + off):
            raise reader.error(f"no flag in {found[0]}", at=start, hint="flags are i, m, s and x")
        self.flags = (self.flags | set(on)) - set(off)
        reader.at = found.end()
        return end == ":"

    def _named(self, start: int) -> None:
        """A named group only groups; its name must still be a name, and the only one of its kind."""
        found = _NAMED_GROUP.match(self.reader.pattern, start)
        name = found[1] if found else ""
        if found is None or not found[2] or not _NAME.match(name):
            raise self.reader.error(
                "not a group name", at=start, hint="names are letters, digits and _, as in (?P<name>…)"
            )
        if name in self.names:
            raise self.reader.error(f"the group name {name!r} is used twice", at=start)
        self.names.add(name)
        self.reader.at = found.end()
