"""What a failing case shows: the input it had, and side by side what came and what should have.

The suites' drivers note each input before they hand it to an engine, and raise DifferenceError where an
engine differs. Hypothesis runs its smallest failing example last, so that what is noted then is that one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT

#: Rows of a table, characters of a line and of a text that are shown.
ROWS: Final = 24
WIDTH: Final = 120
TEXT: Final = 4_000

_given: dict[str, Any] = {}


class DifferenceError(AssertionError):
    """An engine said something else than it should. `found` and `expected` are texts of one or more lines."""

    def __init__(self, what: str, found: str, expected: str) -> None:
        short = f": {found} instead of {expected}"
        super().__init__(what + (short if len(short) < 160 and "\n" not in short else ""))
        self.what, self.found, self.expected = what, found, expected


def forget() -> None:
    """A new case begins."""
    _given.clear()


def fed(engine: object, **inputs: Any) -> None:
    """Note the next pieces, in lists, of what one engine is given."""
    if _given.get("engine") is not engine:
        _given.clear()
        _given["engine"] = engine
    for name, pieces in inputs.items():
        _given.setdefault(name, []).extend(pieces)


def given(**inputs: Any) -> None:
    """Note what an engine is about to be given, by name; the latest of a name counts."""
    _given.update(inputs)


def inputs() -> str:
    """What was given, in lines; empty when nothing was noted."""
    told = {name: value for name, value in _given.items() if name != "engine"}
    return "\n".join(f"{name}:\n{indented(shown(value))}" for name, value in told.items())


def shown(value: Any) -> str:
    """A value as a person reads it: records as a table, framed messages one a line, the rest as Python."""
    if isinstance(value, np.ndarray) and value.dtype.names:
        return table(value)
    if isinstance(value, np.ndarray) and value.dtype == np.uint8 and value.ndim == 1:
        return frames(value.tobytes())
    if isinstance(value, (list, tuple)) and value and all(isinstance(one, np.ndarray) for one in value):
        if value[0].dtype == np.uint8:
            return "\n".join(f"piece of {len(one)}: {frames(one.tobytes())}" for one in value)
        sizes = ", ".join(str(len(one)) for one in value[:ROWS])
        return (f"in batches of {sizes}\n" if len(value) > 1 else "") + table(np.concatenate(value))
    if isinstance(value, Mapping):
        return cut("\n".join(f"{key}: {item!r}" for key, item in value.items()))
    return cut(repr(value))


def frames(data: bytes) -> str:
    """ITCH frames, one a line: the length, then the message, in hexadecimal."""
    lines: list[str] = []
    at = 0
    while at < len(data) and len(lines) < ROWS:
        size = int.from_bytes(data[at : at + 2], "big") if at + 2 <= len(data) else 0
        body = data[at + 2 : at + 2 + size]
        letter = chr(body[0]) if body and 32 < body[0] < 127 else "?"
        lines.append(f"{letter}  {data[at : at + 2].hex()} {body.hex()}")
        at += 2 + size
    if at < len(data):
        lines.append(f"… {len(data) - at} bytes more")
    return cut("\n".join(lines)) or "(no bytes)"


def both(found: NDArray[Any], expected: NDArray[Any], mark: int = -1) -> tuple[str, str]:
    """Two arrays of records as tables of the same rows and columns; those that are zero in both left out."""
    used = [name for name in expected.dtype.names or () if found[name].any() or expected[name].any()]
    return table(found, mark, used), table(expected, mark, used)


def table(records: NDArray[Any], mark: int = -1, columns: Sequence[str] = ()) -> str:
    """Records as a table, `mark` the row in question: that one and those before it when there are many; of
    `columns`, else of those that are not zero throughout."""
    if not len(records):
        return "(no rows)"
    first = max(0, min(mark - ROWS // 2, len(records) - ROWS)) if mark >= 0 else 0
    part = records[first : first + ROWS]
    every = records.dtype.names or ()
    names = list(columns) or [name for name in every if part[name].any()] or list(every)
    cells = [["", *names]]
    for i, record in enumerate(part):
        sign = ">" if first + i == mark else " "
        cells.append([f"{sign}{first + i}", *(_cell(records.dtype, name, record[name]) for name in names)])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        " ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells
    ]
    rest = len(records) - first - len(part)
    return cut("\n".join(lines + ([f"… {rest} rows more"] if rest else [])))


_LETTERS: Final = frozenset({"type", "side", "state"})


def _cell(dtype: np.dtype[Any], name: str, value: Any) -> str:
    if name in _LETTERS and np.ndim(value) == 0 and 32 < int(value) < 127:
        return chr(int(value))
    if isinstance(value, np.ndarray):
        data = value.tobytes()
        text = data.rstrip(b"\0")
        return text.decode("ascii") if text.isalnum() else data.hex()
    return str(value) if dtype is not EVENT or name != "flags" else f"{int(value):#x}"


def side_by_side(found: str, expected: str) -> str:
    """Two texts in columns, lines that differ marked."""
    left, right = found.splitlines(), expected.splitlines()
    wide = min(max([len("the engine"), *map(len, left)]), WIDTH)
    rows = [f"  {'the engine'.ljust(wide)}   what it should be"]
    for a, b in zip_longest(left, right, fillvalue=""):
        rows.append(
            f"{' ' if a.split() == b.split() else '≠'} {a[:WIDTH].ljust(wide)}   {b[:WIDTH]}".rstrip()
        )
    return "\n".join(rows)


def indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def cut(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT]}… ({len(text)} characters)"
