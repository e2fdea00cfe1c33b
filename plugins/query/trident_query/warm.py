"""Every kernel of this package's engines, run once on small inputs so that it is compiled or loaded."""

from __future__ import annotations

from typing import Any

import numpy as np


def columns() -> list[np.ndarray[Any, Any]]:
    """Columns of each kind that has a kernel of its own."""
    eight = np.array([b"A", b"B"], "S8")
    return [eight, np.array([b"A"], "S3")]


def warm_tables(engine: Any) -> None:
    """The kernels of the engine `dfa`: tables of u16 and u32, fields and texts."""
    for pattern in ("A", "[AB]{300}|A"):
        program = engine.compile(pattern)
        for column in columns():
            program.match(column)
        program.spans(b"AB")
        program.ends(b"AB")
    engine.compile("A", first=True).spans(b"A")
    for patterns in (["A", "B"], ["A{300}"]):
        program_set = engine.compile_set(patterns)
        for column in columns():
            program_set.match_set(column)


def warm_bits(engine: Any) -> None:
    """The kernels of the engine `glushkov`: one word and several, fields and texts."""
    for pattern in ("[AB]C", "[AB]{70}C"):
        program = engine.compile(pattern)
        for column in columns():
            program.match(column)
        program.spans(b"AC")
        program.ends(b"AC")
        engine.compile(pattern, first=True).spans(b"AC")
