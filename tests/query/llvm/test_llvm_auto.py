"""`auto` with inputs that are large enough for machine code: the counts of all engines, and who was asked."""

from __future__ import annotations

import numpy as np
import pytest

from trident_query import auto

COLUMN = np.array([b"AAPL", b"MSFT", b"ZZ", b""] * 50, "S8")
TEXT = b" ".join(COLUMN.tolist())


@pytest.mark.parametrize("large", [False, True])
def test_counts(large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LLVM_VALUES_MIN", "LLVM_TEXT_BYTES_MIN", "LLVM_CODES_MIN"):
        monkeypatch.setattr(auto, name, 1 if large else 10**9)
    program = auto.AutoQuery().compile("A.?P|Z")
    assert program.count(COLUMN) == program.match(COLUMN).sum() == 100
    assert program.count_spans(TEXT) == len(program.spans(TEXT)) == 150
    assert program.count_ends(TEXT) == len(program.ends(TEXT)) == 150
    codes = np.array([0, 1, 2, 3, 4, 65_535, 0], np.uint16)
    assert program.count_codes(codes, COLUMN[:4]) == 3
    asked = {what: why.partition(":")[0] for what, why in program.explain()["why"].items()}
    assert set(asked) == {"column", "spans", "ends"}
    assert (set(asked.values()) == {"llvm"}) is large
