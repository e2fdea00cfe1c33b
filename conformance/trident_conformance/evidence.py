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
_example: list[str] = []


class DifferenceError(AssertionError):
    """An engine said something else than it should. `found` and `expected` are texts of one or more lines,
    `where` says in which part they differ."""

    def __init__(self, what: str, found: str, expected: str, where: str = "") -> None:
        short = f": {found} instead of {expected}"
        where = f": {where}" if where else ""
        super().__init__(what + (short if len(short) < 160 and "\n" not in short else where))
        self.what, self.found, self.expected = what, found, expected


def forget() -> None:
    """A new case begins."""
    _given.clear()
    _example.clear()


def meet_again(example: str | None) -> None:
    """Note the random example that failed, as --example takes it; None: none did."""
    _example[:] = [] if example is None else [example]


def example() -> str | None:
    """The random example that failed."""
    return _example[0] if _example else None


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


def asked(**inputs: Any) -> None:
    """Note what an engine is about to be asked, which nothing that was noted before belongs to."""
    _given.clear()
    given(**inputs)


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
    mark = first_difference(found, expected) if mark < 0 else mark
    return table(found, mark, used), table(expected, mark, used)


def table(records: NDArray[Any], mark: int = -1, columns: Sequence[str] = ()) -> str:
    """Records as a table, `mark` the row in question: that one and those before it when there are many; of
    `columns`, else of those that are not zero throughout."""
    if not len(records):
        return "(no rows)"
    first = _window(mark, len(records))
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


def apart(found: Any, expected: Any) -> tuple[str, str, str]:
    """Two values that differ, as texts, and in words where they do: short ones whole, of long ones what is
    around the first difference, with its index."""
    alike = type(found) is type(expected)
    whole = repr(found), repr(expected)
    if max(map(len, whole)) <= WIDTH:
        return (*whole, "")
    if alike and isinstance(found, (list, tuple)):
        at = first_difference(found, expected)
        sizes = f" of {len(found)}" if len(found) == len(expected) else f"; {len(found)} of {len(expected)}"
        return _items(found, at), _items(expected, at), f"the first difference is item {at}{sizes}"
    if alike and isinstance(found, Mapping):
        differ = [key for key in {**expected, **found} if not _same_at(key, found, expected)]
        texts = [shown({key: value[key] for key in differ if key in value}) for value in (found, expected)]
        rest = len({**expected, **found}) - len(differ)
        note = f"\n({rest} more are the same)" if rest else ""
        return texts[0] + note, texts[1] + note, f"of {', '.join(map(repr, differ[:6]))}"
    at = first_difference(*whole)
    return _around(whole[0], at), _around(whole[1], at), f"the first difference is at character {at}"


def _same_at(key: Any, found: Mapping[Any, Any], expected: Mapping[Any, Any]) -> bool:
    return key in found and key in expected and bool(found[key] == expected[key])


def first_difference(found: Any, expected: Any) -> int:
    """The index of the first item that differs, or that one of the two has not; -1: they are equal."""
    n = min(len(found), len(expected))
    if isinstance(found, np.ndarray):
        differ = np.flatnonzero(found[:n] != expected[:n]).tolist()
    else:
        differ = [at for at in range(n) if found[at] != expected[at]][:1]
    return differ[0] if differ else n if len(found) != len(expected) else -1


def _window(mark: int, n: int) -> int:
    """The first of the ROWS rows of n that are shown around `mark`."""
    return max(0, min(mark - ROWS // 2, n - ROWS)) if mark >= 0 else 0


def _items(values: Sequence[Any], mark: int) -> str:
    """The items around one, a line each, with their indices."""
    first = _window(mark, len(values))
    lines = [
        f"{'>' if at == mark else ' '}{at}  {value!r}"
        for at, value in enumerate(values[first : first + ROWS], first)
    ]
    rest = len(values) - first - ROWS
    return "\n".join(lines + ([f"… {rest} items more"] if rest > 0 else [])) or "(none)"


def _around(text: str, at: int) -> str:
    """So much of a long line that what is at `at` is seen."""
    first = max(0, min(at - WIDTH // 3, len(text) - WIDTH)) if at >= 0 else 0
    part = text[first : first + WIDTH]
    return f"{f'[{first}]…' if first else ''}{part}{'…' if first + WIDTH < len(text) else ''}"


def side_by_side(found: str, expected: str) -> str:
    """Two texts in columns, lines that differ marked; of long lines what is around their first difference,
    with the index of the first character shown."""
    pairs = list(zip_longest(found.splitlines(), expected.splitlines(), fillvalue=""))
    differ = [one.split() != other.split() for one, other in pairs]
    if not any(differ):  # columns of tables may be set apart by more blanks; nothing else may
        differ = [one != other for one, other in pairs]
    shorter = [tuple(_around(text, first_difference(*pair)) for text in pair) for pair in pairs]
    wide = max([len("the engine"), *(len(one) for one, _ in shorter)])
    rows = [f"  {'the engine'.ljust(wide)}   what it should be"]
    for (one, other), differs in zip(shorter, differ, strict=True):
        rows.append(f"{'≠' if differs else ' '} {one.ljust(wide)}   {other}".rstrip())
    return "\n".join(rows)


def indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def cut(text: str) -> str:
    return text if len(text) <= TEXT else f"{text[:TEXT]}… ({len(text)} characters)"
