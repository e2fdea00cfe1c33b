"""docs/query-llvm.md: its example runs and gives what it says, its limits are those of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from trident_query.llvm import circuit, code, kernels, objects, verify, windows

PAGE = (Path(__file__).parents[3] / "docs" / "query-llvm.md").read_text(encoding="utf-8")


def test_the_example() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    shown = 0
    for line in example.splitlines():
        expression, mark, wanted = line.partition("  # ")
        if mark:
            assert repr(eval(expression, names)) == wanted.strip()
            shown += 1
        else:
            exec(line, names)
    assert shown == 5


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("bytes of a value | {}", circuit.WIDTH_MAX),
        ("within a value × bytes of a value | {:,}", circuit.STEPS_MAX),
        ("of the circuits of eight patterns of a set | {:,}", code.OPERATIONS_MAX),
        ("may begin a match | one in {:.0f}", 1 / windows.RATE_MAX),
        ("of up to {} bytes", windows.PREFIX_MAX),
        ("at least {} |", verify.WORK),
        ("emptied {} times", verify.FLUSHES_MAX),
        ("| {}, 16 MiB |", kernels.LIBRARIES_MAX),
        ("cache on disk | {} MiB", objects.FOLDER_BYTES_MAX >> 20),
    ],
)
def test_the_limits(words: str, value: float) -> None:
    assert words.format(value) in PAGE
    assert (kernels.LIBRARY_BYTES_MAX, verify.TABLE_BYTES_MAX) == (16 << 20, 4 << 20)
