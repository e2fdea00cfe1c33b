"""Known failures: a file that says which cases an engine does not pass yet, and why.

One case a line, by its id as failures print it (`test_book.py::TestVectors::test_one[book=mine-…]`) or a
pattern of ids with `*` and `?`, then `#` and the reason. A case that passes although it is listed, and a line
that no case matches, are errors: the file never says more than the truth.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from trident_conformance.matrix import short


@dataclass
class Known:
    """One line of the file."""

    pattern: str
    reason: str
    line: int
    used: bool = False

    def matches(self, case: str) -> bool:
        """`*` and `?` only: the brackets of ids are meant as they stand."""
        parts = re.split(r"([*?])", self.pattern)
        regex = "".join({"*": ".*", "?": "."}.get(part, re.escape(part)) for part in parts)
        return re.fullmatch(regex, case) is not None


def read(path: Path) -> list[Known]:
    """The lines of a file. Raises pytest.UsageError, with the line, for one without a reason."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise pytest.UsageError(f"--known-failures {path}: {error}") from None
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        pattern, mark, reason = line.partition("#")
        if not pattern.strip():
            continue
        if not mark or not reason.strip():
            raise pytest.UsageError(f"{path}, line {number}: no reason (write: case-id  # why it fails)")
        found.append(Known(pattern.strip(), reason.strip(), number))
    return found


def mark(items: list[pytest.Item], path: Path) -> None:
    """Expect the cases listed to fail. Raises pytest.UsageError for a line that matches no case."""
    lines = read(path)
    for item in items:
        for line in lines:
            if line.matches(short(item.nodeid)):
                line.used = True
                item.add_marker(pytest.mark.xfail(reason=line.reason, strict=True))
    unused = [f"line {line.line}: {line.pattern}" for line in lines if not line.used]
    if unused:
        raise pytest.UsageError(
            f"{path}: no case is called so: {'; '.join(unused[:5])}; take out or correct these lines"
        )
