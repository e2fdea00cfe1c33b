"""The pattern's characters, read from left to right, and the escapes that stand for one byte."""

from __future__ import annotations

from typing import Final

from trident_core.errors import PatternError
from trident_query.limits import LimitError

_CONTROL: Final = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "a": 7}

_HEX: Final = frozenset("0123456789abcdefABCDEF")

#: Escapes that other dialects have and this one refuses: letter -> (what it is, what to do).
_REFUSED: Final[dict[str, tuple[str, str]]] = {
    "p": ("a Unicode property", "patterns are about bytes: use a class such as [A-Z] or [[:upper:]]"),
    "P": ("a Unicode property", "patterns are about bytes: use a class such as [^A-Z] or [^[:upper:]]"),
    "C": ("a single-byte escape", "every . is one byte: write (?s:.)"),
    "G": ("an anchor at the end of the last match", "anchor with \\A, or search again from there"),
    "K": ("a reset of the match start", "match the whole, and cut it afterwards"),
    "R": ("a line-break escape", "write (?:\\r\\n|[\\n\\v\\f\\r])"),
    "X": ("a grapheme escape", "patterns are about bytes"),
    "N": ("a not-newline escape", "write [^\\n]"),
    "h": ("a horizontal-space escape", "write [\\t ]"),
    "H": ("a horizontal-space escape", "write [^\\t ]"),
    "V": ("a not-vertical-space escape", "write [^\\n\\v\\f\\r]"),
    "Q": ("quoting", "escape each special character with \\"),
    "E": ("quoting", "escape each special character with \\"),
    "Z": ("an end anchor that dialects disagree on", "write \\z, or \\n?\\z to allow a last newline"),
    "e": ("an escape-character escape", "write \\x1B"),
    "c": ("a control-character escape", "write the byte, as in \\x01"),
    "o": ("an octal escape", "write the byte in hexadecimal, as in \\x0A"),
    "u": ("a Unicode escape", "write the character itself, or its UTF-8 bytes as \\xHH"),
    "U": ("a Unicode escape", "write the character itself, or its UTF-8 bytes as \\xHH"),
    "g": ("a back-reference", "patterns here cannot look back at what a group matched"),
    "k": ("a back-reference", "patterns here cannot look back at what a group matched"),
    "<": ("a word anchor in some dialects", "write \\b, or < for the character"),
    ">": ("a word anchor in some dialects", "write \\b, or > for the character"),
}


class Reader:
    """A cursor over a pattern. `at` counts characters; errors carry byte offsets in its UTF-8 form."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        try:
            pattern.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            raise self.error("a lone surrogate is not a character", at=error.start) from None

    def error(
        self, message: str, *, at: int | None = None, hint: str = "", construct: str = ""
    ) -> PatternError:
        """The error to raise for the character at `at` (the cursor by default)."""
        before = self.pattern[: self.at if at is None else at]
        position = len(before.encode("utf-8", "surrogateescape"))
        return PatternError(message, pattern=self.pattern, position=position, hint=hint, construct=construct)

    def refused(self, what: str, *, at: int, shown: str = "", hint: str = "") -> PatternError:
        """The error for a construct of other dialects: `what` it is, with its article."""
        message = f"{what}{shown} is not in the dialect"
        return self.error(message, at=at, hint=hint, construct=what.removeprefix("a ").removeprefix("an "))

    def limit(
        self, cap: str, value: int, limit: int, *, start: int, part_start: int | None = None
    ) -> LimitError:
        """The error for a cap that is passed at `start`; the sub-pattern ends at the cursor."""
        position = len(self.pattern[:start].encode("utf-8", "surrogateescape"))
        part = self.pattern[start if part_start is None else part_start : self.at]
        return LimitError(cap, value, limit, pattern=self.pattern, position=position, part=part)

    def more(self) -> bool:
        return self.at < len(self.pattern)

    def sees(self, text: str) -> bool:
        return self.pattern.startswith(text, self.at)

    def take(self, text: str) -> bool:
        """Move past `text` if it comes next."""
        if not self.sees(text):
            return False
        self.at += len(text)
        return True

    def next(self) -> str:
        """The next character, consumed. Only where there is `more`."""
        self.at += 1
        return self.pattern[self.at - 1]

    def byte_escape(self) -> int:
        r"""The byte that an escape stands for; the cursor is behind the backslash, at `\`'s position + 1."""
        start = self.at - 1
        if not self.more():
            raise self.error("nothing after the backslash", at=start, hint="write \\\\ for a backslash")
        char = self.next()
        if char in _CONTROL:
            return _CONTROL[char]
        if char == "x":
            return self._hex(start)
        if char.isascii() and char.isdigit():
            return self._octal(char, start)
        if char in _REFUSED:
            what, hint = _REFUSED[char]
            name = what.removeprefix("a ").removeprefix("an ")
            message = f"\\{char} ({what}) is not in the dialect"
            raise self.error(message, at=start, hint=hint, construct=name)
        if not char.isascii() or char.isalpha():
            raise self.error(f"\\{char} is no escape of the dialect", at=start, hint=f"write {char} alone")
        return ord(char)

    def _octal(self, digit: str, start: int) -> int:
        """`\\0` and up to two more octal digits, as everywhere; any other digit would be a back-reference."""
        if digit != "0":
            raise self.refused(
                "a back-reference",
                shown=f" (\\{digit})",
                at=start,
                hint="patterns here cannot look back at what a group matched; for a byte write \\xHH",
            )
        value = 0
        for _ in range(2):
            if self.more() and self.pattern[self.at] in "01234567":
                value = value * 8 + int(self.next())
        return value

    def _hex(self, start: int) -> int:
        braced = self.take("{")
        end = self.pattern.find("}", self.at) if braced else self.at + 2
        digits = self.pattern[self.at : end] if end >= 0 else ""
        if not digits or not _HEX.issuperset(digits) or (not braced and len(digits) != 2):
            raise self.error("\\x needs hexadecimal digits", at=start, hint="write \\xHH or \\x{HH}")
        if len(digits.lstrip("0")) > 2:
            raise self.error(
                "\\x{…} is one byte, at most FF",
                at=start,
                hint="write the character itself; it stands for its UTF-8 bytes",
            )
        self.at = end + braced
        return int(digits, 16)
