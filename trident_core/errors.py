"""The error tree. Every error a user can meet says what happened, where, and what to do next.

Misuse is an exception; bad data is a status with an offset and a count (see `trident_core.stats`).
The command line prints `message` and `hint` on one line each and exits with `exit_code`.
"""

from __future__ import annotations


class TridentError(Exception):
    """Base of all errors raised on purpose.

    `message` is one line, `hint` one line or empty. `exit_code` is what the command line exits with:
    0 success, 1 a bug in Trident, 2 wrong usage, 3 unreadable or foreign input, 4 a damaged store or a
    failed verification, 5 a plugin that cannot be used, 130 interrupted.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class UsageError(TridentError):
    """The caller asked for something that does not make sense (a bad option, array or order of calls)."""

    exit_code = 2


class PatternError(UsageError):
    """A pattern that the dialect refuses. `position` is the byte offset in `pattern` (in UTF-8);
    `construct` the name of what is refused, such as "look-ahead", where other dialects have it.
    """

    def __init__(
        self, message: str, *, pattern: str, position: int, hint: str = "", construct: str = ""
    ) -> None:
        shown = repr(pattern) if len(pattern) <= 200 else f"{pattern[:200]!r}…"
        super().__init__(f"{message} at offset {position} of {shown}", hint=hint)
        self.reason = message
        self.pattern = pattern
        self.position = position
        self.construct = construct

    def caret(self) -> str:
        """The pattern (of several lines, the one in question) and, under it, a caret at the error."""
        before = self.pattern.encode("utf-8", "replace")[: self.position].decode("utf-8", "replace")
        line = before.rpartition("\n")[2]
        rest = self.pattern[len(before) :].partition("\n")[0]
        return f"{line}{rest}\n{' ' * len(line)}^ {self.reason}"


class InputError(TridentError):
    """Input that cannot be read at all: not there, not allowed, or not a format that any feed knows."""

    exit_code = 3


class StoreError(TridentError):
    """A store that cannot be opened, written or read."""

    exit_code = 4


class DamagedStoreError(StoreError):
    """A store whose bytes are damaged where a crash cannot explain it.

    `file`, `offset` and the ordinals `[first, last]` (last is None when unknown) say what is lost.
    """

    def __init__(
        self, message: str, *, file: str, offset: int, first: int, last: int | None, hint: str = ""
    ) -> None:
        upto = "unknown" if last is None else str(last)
        super().__init__(
            f"{message}: {file} at offset {offset}, events {first} to {upto} are affected", hint=hint
        )
        self.file = file
        self.offset = offset
        self.first = first
        self.last = last


class PluginError(TridentError):
    """A plugin that is unknown, broken, a duplicate, or made for another contract."""

    exit_code = 5
