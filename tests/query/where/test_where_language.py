"""The language of conditions: what it accepts, and where it says no."""

from __future__ import annotations

from fractions import Fraction

import pytest

from trident_core.errors import PatternError, UsageError
from trident_core.session import Instrument, Session
from trident_query.where.fields import Checker
from trident_query.where.parse import DEPTH_MAX, SIGNS_MAX, parse_expression
from trident_query.where.predicate import Predicate
from trident_query.where.tokens import TEXT_MAX, parse_duration
from trident_query.where.tree import Binary, Literal


def refused(text: str) -> PatternError:
    with pytest.raises(PatternError) as caught:
        Checker(text).condition(parse_expression(text))
    return caught.value


@pytest.mark.parametrize(
    ("text", "position", "said"),
    [
        ("type='AB'", 5, "not one letter"),
        ("price > '4'", 6, "cannot be compared"),
        ("ts > '09:30'", 3, "cannot be compared"),
        ("symbol < 'A'", 7, "no order"),
        ("prev(price) > 1", 0, "no function 'prev'"),
        ("size = 3", 0, "no field 'size'"),
        ("qty between 1 or 2", 14, "'and' is missing"),
        ("(type = 'A'", 11, "')' is missing"),
        ("type = 'A", 7, "quote is not closed"),
        ("qty = ", 6, "value is missing"),
        ("qty = 3 4", 8, "does not belong"),
        ("1 < qty < 3", 8, "do not chain"),
        ("qty", 0, "no condition"),
        ("ts < 25:99", 5, "not a time of day"),
        ("qty > 5 parsecs", 8, "does not belong"),
        ("qty > 5parsecs", 7, "no unit"),
        ("symbol like 'A%'", 7, "like is not"),
        ("symbol = null", 7, "nothing equals null"),
        ("price / 2 > 1", 6, "no /"),
        ("é = 'A'", 0, "starts nothing"),
        ("type = 'é'", 7, "not one letter"),
        ("symbol ~ price", 9, "pattern in quotes"),
        ("price > 99999999999", 8, "cap on prices"),
        ("B.price > 1", 0, "pattern variable"),
    ],
)
def test_what_is_refused_says_where(text: str, position: int, said: str) -> None:
    """SEQUENCE-4."""
    error = refused(text)
    assert error.position == position
    assert said in error.reason


def test_positions_are_bytes_and_the_caret_stands_under_the_place() -> None:
    error = refused("symbol = 'éé' and qty <> 'x'")
    assert error.position == len("symbol = 'éé' and qty ".encode())
    line, caret = error.caret().split("\n")
    assert line[caret.index("^") :].startswith("<>")


@pytest.mark.parametrize(
    "text",
    [
        "(" * (DEPTH_MAX + 1) + "qty = 1" + ")" * (DEPTH_MAX + 1),
        "not " * (DEPTH_MAX + 2) + "qty = 1",
        "qty = " + "-" * (DEPTH_MAX + 2) + "1",
        " or ".join(["qty = 1"] * (SIGNS_MAX + 1)),
        "qty = 1" + " " * TEXT_MAX,
        "qty in (" + ", ".join(["1"] * 5_000) + ")",
    ],
)
def test_caps_are_named(text: str) -> None:
    """SEQUENCE-4, 60."""
    assert "cap on" in refused(text).reason


def test_a_bad_pattern_in_a_condition_is_a_pattern_error() -> None:
    with pytest.raises(PatternError):
        Predicate("symbol ~ '(a'", Session(directory=_directory()))


def _directory():  # type: ignore[no-untyped-def]
    session = Session()
    session.directory.put(Instrument(1, "AAPL"))
    return session.directory


def test_numbers_times_and_durations_are_exact() -> None:
    tree = parse_expression("price < 100.25")
    assert isinstance(tree, Binary)
    assert isinstance(tree.right, Literal)
    assert tree.right.value == Fraction(401, 4)
    assert parse_expression("ts >= 09:30:00.000000001").right.value == 34_200_000_000_001  # type: ignore[union-attr]
    assert parse_duration("1.5ms") == 1_500_000
    assert parse_duration("250us") == 250_000
    for wrong in ("5", "ms", "1.0000001us", "-5ms", "5 parsecs"):
        with pytest.raises(UsageError):
            parse_duration(wrong)
