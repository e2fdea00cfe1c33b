"""The ladder as a state machine: given how full the ring is and the time, where does it stand?"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trident_core.contracts import Pressure
from trident_core.errors import UsageError
from trident_core.line.ladder import Ladder, Thresholds

CALM = Thresholds().calm_s


def climb(fill: float) -> Ladder:
    ladder = Ladder(0.0)
    ladder.look(fill, 0.0)
    return ladder


@pytest.mark.parametrize(
    ("fill", "level"),
    [
        (0.0, Pressure.NORMAL), (0.2499, Pressure.NORMAL), (0.25, Pressure.SHED_SYNC),
        (0.4999, Pressure.SHED_SYNC), (0.5, Pressure.SHED_INDEX), (0.7499, Pressure.SHED_INDEX),
        (0.75, Pressure.RAW_SPILL), (1.0, Pressure.RAW_SPILL),
    ],
)  # fmt: skip
def test_up_at_once_to_the_rung_of_the_fill(fill: float, level: Pressure) -> None:
    ladder = climb(fill)
    assert ladder.level is level
    assert [rung.entered for rung in ladder.rungs] == [0] + [int(level >= each) for each in (1, 2, 3)]


def test_down_one_rung_at_a_time_each_after_a_calm() -> None:
    ladder = Ladder(0.0, Thresholds(calm_s=0.5))
    ladder.look(1.0, 0.0)
    seen = [ladder.look(0.0, step * 0.25) for step in range(1, 9)]
    assert [int(level) for level in seen] == [3, 3, 2, 2, 1, 1, 0, 0]
    assert [rung.returned for rung in ladder.rungs] == [0, 1, 1, 1]


def test_a_moment_above_the_lower_threshold_begins_the_calm_anew() -> None:
    ladder = climb(0.5)
    ladder.look(0.2, 1.0)
    ladder.look(0.3, 1.0 + CALM / 2)  # between down (0.25) and up (0.5): stays, and is not calm
    assert ladder.look(0.2, 1.0 + CALM) is Pressure.SHED_INDEX
    assert ladder.look(0.2, 1.0 + 2 * CALM) is Pressure.SHED_SYNC


def test_between_the_thresholds_it_stays_where_it_is() -> None:
    for fill, level in ((0.2, Pressure.SHED_SYNC), (0.3, Pressure.SHED_INDEX), (0.6, Pressure.RAW_SPILL)):
        ladder = Ladder(0.0)
        ladder.look(Thresholds().up[level - 1], 0.0)
        assert ladder.look(fill, 100.0) is level
        assert ladder.look(fill, 200.0) is level


def test_never_off_the_last_rung_while_something_is_spilled() -> None:
    ladder = climb(0.8)
    for step in range(1, 50):
        assert ladder.look(0.0, step * CALM, spilled=True) is Pressure.RAW_SPILL
    ladder.look(0.0, 50 * CALM)
    assert ladder.look(0.0, 51 * CALM) is Pressure.SHED_INDEX


def test_without_a_spill_the_last_rung_is_not_used() -> None:
    ladder = Ladder(0.0, highest=Pressure.SHED_INDEX)
    assert ladder.look(1.0, 0.0) is Pressure.SHED_INDEX
    assert ladder.rungs[3].entered == 0


def test_seconds_are_those_on_the_rung_and_the_end_returns_to_normal() -> None:
    ladder = Ladder(10.0)
    ladder.look(0.3, 12.0)
    ladder.look(0.8, 12.5)
    ladder.finish(15.5)
    assert [rung.seconds for rung in ladder.rungs] == [2.0, 0.5, 0.0, 3.0]
    assert [rung.returned for rung in ladder.rungs] == [0, 1, 1, 1]
    assert [row["level"] for row in ladder.census()] == ["Normal", "ShedSync", "ShedIndex", "RawSpill"]


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 0.2), st.booleans()), max_size=60))
def test_whatever_comes_the_census_balances(looks: list[tuple[float, float, bool]]) -> None:
    ladder, now = Ladder(0.0), 0.0
    for fill, step, spilled in looks:
        now += step
        before = ladder.level
        level = ladder.look(fill, now, spilled=spilled)
        assert level >= before - 1
        assert level >= sum(fill >= share for share in Thresholds().up)
    for rung in ladder.rungs[1:]:
        assert rung.entered - rung.returned == int(ladder.level >= ladder.rungs.index(rung))
    ladder.finish(now)
    assert sum(rung.seconds for rung in ladder.rungs) == pytest.approx(now)
    assert all(rung.entered == rung.returned for rung in ladder.rungs[1:])


@pytest.mark.parametrize(
    "wrong",
    [
        {"up": (0.5, 0.25, 0.75)}, {"down": (0.25, 0.25, 0.5)}, {"up": (0.25, 0.5, 1.5)}, {"calm_s": -1.0},
        {"down": (-0.1, 0.2, 0.3)},
    ],
)  # fmt: skip
def test_thresholds_that_make_no_ladder_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="make no ladder"):
        Thresholds(**wrong)
