"""Cases of MATCH_RECOGNIZE from Trino's tests, tables of other origins, and SQL that is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trident_core.errors import PatternError, TridentError
from trident_query.sequence.answering import answer_rows
from trident_query.sequence.cases import load, outcome
from trident_query.sequence.question import SequenceError
from trident_query.sequence.reference import answer
from trident_query.sequence.sql import parse_sql, project
from trident_query.sequence.tables import table_rows, table_spans

pytest.importorskip("sqlglot")

#: Cases that are refused, each by a documented name: four ask of a variable that their pattern does not have
#: (cut wrongly out of a longer test), one has WITH around the clause.
REFUSED = {f"trino/testNavigationFunctions/{n}" for n in (19, 20, 22, 23)} | {"trino/testProperties/1"}

RISING = """SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY key ORDER BY ts
    MEASURES first(price) AS low, last(price) AS high, count(*) AS n, classifier() AS label
    ONE ROW PER MATCH {skip} PATTERN (start_ up{{2,}}) DEFINE up AS price > prev(price))"""


@pytest.mark.shared
@pytest.mark.parametrize("engine", [answer_rows, answer], ids=["automata", "reference"])
def test_cases_of_trino_pass_or_are_refused_by_name(engine: object, shared: Callable[..., Path]) -> None:
    said = {case["id"]: outcome(case, engine) for case in load(shared("cases", "regex", "seq_cases.jsonl"))}
    assert {name for name, text in said.items() if text.startswith("refused")} == REFUSED
    assert Counter(text.partition(":")[0] for text in said.values()) == {"passed": 101, "refused": 5}


def columns(n: int, seed: int = 3) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {"key": rng.integers(0, 5, n), "ts": rng.permutation(n), "price": rng.integers(0, 50, n)}


@pytest.mark.parametrize("skip", ["", "AFTER MATCH SKIP TO NEXT ROW", "AFTER MATCH SKIP TO LAST up"])
def test_any_table_gives_the_same_rows_as_the_reference(skip: str) -> None:
    """SEQUENCE-50."""
    table = columns(300)
    question = parse_sql(RISING.format(skip=skip)).question
    rows = [
        dict(zip(table, values, strict=True))
        for values in zip(*(c.tolist() for c in table.values()), strict=True)
    ]
    wanted = answer(question, rows)
    assert len(wanted) > 10
    assert table_rows(question, table) == wanted
    assert table_rows(question, rows) == wanted
    arrow = pytest.importorskip("pyarrow")
    assert table_rows(question, arrow.table(table)) == wanted


def test_spans_of_a_table_count_what_its_rows_count() -> None:
    question = parse_sql(RISING.format(skip="")).question
    table = columns(2_000)
    assert len(table_spans(question, table)) == len(table_rows(question, table))


@pytest.mark.parametrize("engine", [answer_rows, answer], ids=["automata", "reference"])
@pytest.mark.parametrize(
    ("condition", "matched"),
    [
        ("prev(next(v)) > 0", [2, 3, 4]),  # there is no row before the first to look on from
        ("next(prev(v)) > 0", [1, 2, 3]),
        ("prev(prev(v)) > 0", [3, 4]),
        ("prev(v - prev(v)) = 4", [3]),  # the whole as it was at the row before
        ("prev(v + next(v)) = 8", [3]),
    ],
)
def test_navigation_in_navigation(engine: Callable[..., object], condition: str, matched: list[int]) -> None:
    statement = parse_sql(f"""SELECT id FROM (VALUES (1, 1), (2, 5), (3, 3), (4, 9)) t(id, v) MATCH_RECOGNIZE
        (ORDER BY id ALL ROWS PER MATCH PATTERN (X) DEFINE X AS {condition})""")
    assert project(statement, engine(statement.question, statement.source)) == [[n] for n in matched]  # type: ignore[arg-type]


def test_nulls_are_unknown_and_sort_last() -> None:
    sql = """SELECT id, label FROM (VALUES (1, 5), (2, null), (3, 7)) t(id, v) MATCH_RECOGNIZE (ORDER BY v
        MEASURES classifier() AS label ALL ROWS PER MATCH PATTERN ((HIGH | LOW | X)+)
        DEFINE HIGH AS v > 5, LOW AS NOT (v > 5))"""
    statement = parse_sql(sql)
    rows = project(statement, answer_rows(statement.question, statement.source))  # type: ignore[arg-type]
    assert rows == [[1, "LOW"], [3, "HIGH"], [2, "X"]]


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT 1", "0 MATCH_RECOGNIZE"),
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS median(x) > 1)", "median"),
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A", "not readable"),
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS x IN (SELECT y FROM u))", "subquery"),
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS true) WHERE x = 1", "WHERE"),
        ("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) SUBSET U = A DEFINE A AS true)", "SUBSET"),
    ],
)
def test_sql_that_is_not_read_is_refused_by_its_name(sql: str, said: str) -> None:
    with pytest.raises(PatternError, match=said):
        parse_sql(sql)


def test_backtracking_needs_a_switch_and_has_a_cap() -> None:
    sql = """SELECT * FROM (VALUES {rows}) t(v) MATCH_RECOGNIZE (ORDER BY v MEASURES classifier() AS c
        PATTERN ((A | B)+ LAST_) DEFINE LAST_ AS first(classifier()) = 'Z')"""
    statement = parse_sql(sql.format(rows=", ".join(f"({n})" for n in range(30))), steps_max=10_000)
    with pytest.raises(SequenceError, match="depends on the match so far"):
        table_rows(statement.question, statement.source)
    with pytest.raises(SequenceError, match="10,000 steps of backtracking"):
        table_rows(statement.question, statement.source, allow_backtracking=True)


def test_an_unknown_column_is_named() -> None:
    question = parse_sql("SELECT * FROM t MATCH_RECOGNIZE (PATTERN (A) DEFINE A AS size > 1)").question
    with pytest.raises(TridentError, match="no column 'size'"):
        table_rows(question, columns(5))
