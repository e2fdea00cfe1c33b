"""`match` on columns: padding, types of column, distinct values, and the spec that registers the engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from trident_core.contracts import Capability, Kind, SpanProgram
from trident_core.errors import UsageError
from trident_query.plugin import trident_register_queries
from trident_query.reference import ReferenceQuery


def test_padding_does_not_belong_to_a_value(engine: ReferenceQuery) -> None:
    column = np.array([b"AAPL    ", b"AAPL\0\0\0\0", b"AAPL \0 \0", b" AAPL   ", b"A B     ", b"        "])
    assert engine.compile("^AAPL$").match(column).tolist() == [True, True, True, False, False, False]
    assert engine.compile("A B", full=True).match(column).tolist() == [False] * 4 + [True, False]
    assert engine.compile("^$").match(column).tolist() == [False] * 5 + [True]
    assert engine.compile("^ ").match(column).tolist() == [False] * 3 + [True, False, False]


def test_raw_values_keep_their_padding(engine: ReferenceQuery) -> None:
    column = np.array([b"AAPL    ", b"AAPL\0\0\0\0", b"AAPL"], dtype="S8")
    assert engine.compile("^AAPL *$", raw=True).match(column).tolist() == [True, False, False]
    assert engine.compile(r"^AAPL\0{4}$", raw=True).match(column).tolist() == [False, True, True]
    assert engine.compile(r"^AAPL\x00{3}$", raw=True).match(column).tolist() == [False, False, False]


def test_two_dimensional_columns(engine: ReferenceQuery) -> None:
    aux = np.zeros((3, 8), dtype=np.uint8)
    aux[:, :4] = np.frombuffer(b"NSDQGS  AB\0\0", dtype=np.uint8).reshape(3, 4)
    aux[:, 4:] = ord("!")
    assert engine.compile("^(?:GS|AB)$").match(aux[:, :4]).tolist() == [False, True, True]
    assert engine.compile(r"\0", raw=True).match(aux[:, :4]).tolist() == [False, False, True]
    every = np.arange(256, dtype=np.uint8)[:, None]
    assert np.flatnonzero(engine.compile("[AF]", raw=True).match(every)).tolist() == [65, 70]
    assert np.flatnonzero(engine.compile("^.$", raw=True).match(every)).tolist() == [
        value for value in range(256) if value != 10
    ]


def test_empty_columns(engine: ReferenceQuery) -> None:
    program = engine.compile("a*")
    assert program.match(np.zeros(0, dtype="S8")).tolist() == []
    assert program.match(np.zeros((0, 4), dtype=np.uint8)).tolist() == []
    assert program.match(np.zeros((2, 0), dtype=np.uint8)).tolist() == [True, True]
    assert engine.compile("a", raw=True).match(np.zeros((2, 0), dtype=np.uint8)).tolist() == [False, False]
    assert engine.compile(r"\0", raw=True).match(np.zeros((2, 0), dtype=np.uint8)).tolist() == [False, False]


def test_strided_and_read_only_columns(engine: ReferenceQuery) -> None:
    records = np.zeros(4, dtype=[("number", "<u4"), ("symbol", "S8")])
    records["symbol"] = [b"A", b"B", b"A", b"C"]
    records.flags.writeable = False
    program = engine.compile("A|C")
    assert program.match(records["symbol"]).tolist() == [True, False, True, True]
    assert program.match(records["symbol"][::-2]).tolist() == [True, False]


@pytest.mark.parametrize(
    ("column", "named"),
    [
        (np.array(["A"]), "<U1[1]"),
        (np.array([b"A"], dtype=object), "object[1]"),
        (np.zeros(3, dtype=np.uint8), "uint8[3]"),
        (np.zeros((2, 2), dtype="S1"), "|S1[2, 2]"),
        (np.zeros((2, 2), dtype=np.int8), "int8[2, 2]"),
        ([b"A"], "list"),
    ],
)
def test_other_columns_are_misuse(engine: ReferenceQuery, column: Any, named: str) -> None:
    with pytest.raises(UsageError) as caught:
        engine.compile("A").match(column)
    assert named in caught.value.message
    assert caught.value.hint


def test_each_distinct_value_is_matched_once(engine: ReferenceQuery, monkeypatch: pytest.MonkeyPatch) -> None:
    program = engine.compile("A$")
    seen: list[bytes] = []
    exists = program.simulation.exists
    monkeypatch.setattr(program.simulation, "exists", lambda value: seen.append(value) or exists(value))
    column = np.array([b"A", b"BA", b"C", b"A "] * 50_000, dtype="S8")
    matches = program.match(column)
    assert matches.dtype == np.bool_
    assert matches[:8].tolist() == [True, True, False, True] * 2
    assert sorted(seen) == [b"A", b"A", b"BA", b"C"]


def test_spans_are_bytes_and_limits(engine: ReferenceQuery) -> None:
    program = engine.compile("a")
    assert program.spans(b"aaa", limit=2) == [(0, 1), (1, 2)]
    assert program.spans(bytearray(b"ba")) == program.spans(memoryview(b"ba")) == [(1, 2)]
    with pytest.raises(UsageError, match="limit"):
        program.spans(b"a", -1)
    with pytest.raises(UsageError, match="bytes"):
        program.spans("a")  # type: ignore[arg-type]


def test_the_plugin_registers_its_engines() -> None:
    specs = {spec.name: spec for spec in trident_register_queries()}
    assert {"reference", "dfa", "glushkov", "re2", "auto"} <= set(specs)
    for spec in specs.values():
        assert spec.kind is Kind.QUERY
        assert Capability.SPANS in spec.capabilities
    program = specs["reference"].load()().compile("a", flags="i")
    assert isinstance(program, SpanProgram)
    assert program.pattern == "a"
