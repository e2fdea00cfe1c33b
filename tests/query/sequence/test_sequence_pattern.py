"""The language of row patterns: what is refused, where, and by which cap."""

from __future__ import annotations

import pytest

from trident_core.errors import PatternError, TridentError, UsageError
from trident_core.session import Session
from trident_query.sequence.engines import NumbaSequences
from trident_query.sequence.pattern import parse_pattern, variables
from trident_query.sequence.question import SequenceError


@pytest.mark.parametrize(
    ("text", "position", "said"),
    [
        ("A )", 2, "does not belong"),
        ("(A", 2, "')' is missing"),
        ("A**", 2, "two quantifiers"),
        ("A{3,2}", 1, "reversed"),
        ("A{}", 1, "number is missing"),
        ("A{1.5}", 2, "whole number"),
        ("A{999}", 2, "cap on patterns"),
        ("(A{200}){200}", 0, "cap on patterns"),
        ("{- A", 4, "'-}' is missing"),
        ("PERMUTE(A,B,C,D,E,F)", 0, "cap on patterns"),
        ("(" * 60 + "A" + ")" * 60, 48, "cap on patterns"),
        ("é", 0, "starts nothing"),
    ],
)
def test_what_is_refused_says_where(text: str, position: int, said: str) -> None:
    with pytest.raises(PatternError) as caught:
        parse_pattern(text)
    assert said in caught.value.reason
    assert caught.value.position == position


def test_variables_of_sql_are_folded_and_quoted_ones_are_not() -> None:
    assert variables(parse_pattern('a "b"+ C | PERMUTE(d, "e")', fold=True)) == ["A", "b", "C", "D", "e"]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"match": "big D"}, PatternError, "not defined"),
        ({"match": "A D", "per": "firm"}, UsageError, "--per"),
        ({"match": "A D", "within": "soon"}, UsageError, "duration"),
        ({"match": "A D", "define": ["big type = 'A'"]}, PatternError, "NAME: condition"),
        ({"match": "A D", "define": ["big: type = 'A'"]}, UsageError, "not in the pattern"),
        ({"match": "A D", "skip": "over"}, UsageError, "--skip"),
        ({"match": "A D", "skip": "last:E"}, UsageError, "not in the pattern"),
        ({"match": "A D", "skip": "next"}, SequenceError, "all rows of a partition"),
        ({"match": "A D", "measures": ["n = median(price)"]}, PatternError, "no function 'median'"),
        ({"match": "A up", "define": ["up: price > A.price"]}, SequenceError, "depends on the match so far"),
        ({"match": "A up", "define": ["up: sum(qty) > 5"]}, SequenceError, "depends on the match so far"),
    ],
)
def test_questions_that_do_not_fit_are_refused_by_name(
    options: dict[str, object], error: type[TridentError], said: str
) -> None:
    with pytest.raises(error, match=said):
        NumbaSequences().search(session=Session(), **options)  # type: ignore[arg-type]
