"""What a LOBSTER file leaves out, in days of a few lines made by hand."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from trident_core.decode import events_of
from trident_core.dtypes import EVENT, Events
from trident_core.errors import InputError
from trident_core.session import Session
from trident_parser.lobster import LobsterParser
from trident_parser.lobster_gaps import complete_day, opening_orders, read_day, unseen_cancels


def day(*lines: str) -> Events:
    """Events of `type,id,size,price,direction` lines, a second apart."""
    text = "".join(f"{34200 + n}.5,{line}\n" for n, line in enumerate(lines))
    return events_of(text.encode(), LobsterParser(Session()))


def rows(events: Events) -> list[tuple[int, str, int, int, int, str]]:
    """seq, type, reference, quantity, price, side."""
    return [
        (int(e["seq"]), chr(e["type"]), int(e["ref"]), int(e["qty"]), int(e["price"]), chr(e["side"]))
        for e in events
    ]


def test_an_order_that_is_added_needs_nothing() -> None:
    events = day("1,7,100,500,1", "2,7,30,500,1", "4,7,20,500,1", "3,7,50,500,1")
    assert len(opening_orders(events)) == len(unseen_cancels(events)) == 0
    assert complete_day(events).tobytes() == events.tobytes()


def test_opening_orders_hold_what_is_taken_from_them_by_ascending_reference() -> None:
    events = day("4,9,10,600,-1", "2,7,30,500,1", "4,9,15,600,-1", "3,7,50,500,1", "1,8,5,500,1")
    opening = opening_orders(events)
    assert rows(opening) == [(0, "A", 7, 80, 500, "B"), (0, "A", 9, 25, 600, "S")]
    assert opening["ts"].tolist() == [0, 0]
    assert opening["locate"].tolist() == [1, 1]


def test_after_its_deletion_an_order_is_gone() -> None:
    assert rows(opening_orders(day("3,7,50,500,1", "4,7,10,500,1"))) == [(0, "A", 7, 50, 500, "B")]


def test_only_what_is_taken_before_the_add_is_the_opening_orders() -> None:
    events = day("4,7,10,500,1", "1,7,40,500,1", "4,7,40,500,1")
    assert rows(opening_orders(events)) == [(0, "A", 7, 10, 500, "B")]


def test_hidden_executions_crosses_and_halts_are_of_no_order() -> None:
    events = day("5,0,10,500,1", "6,-1,10,500,1", "7,0,0,-1,-1", "5,3,10,500,1")
    assert len(opening_orders(events)) == 0


def test_an_opening_order_of_no_shares_is_none() -> None:
    assert len(opening_orders(day("3,7,0,500,1"))) == 0


def test_a_deletion_of_fewer_shares_than_are_left_proves_a_cancel() -> None:
    events = day("1,7,400,500,-1", "4,7,100,500,-1", "1,8,5,500,-1", "3,7,200,500,-1")
    assert rows(unseen_cancels(events)) == [(4, "X", 7, 100, 500, "S")]
    assert rows(complete_day(events))[3:] == [(4, "X", 7, 100, 500, "S"), (4, "D", 7, 200, 500, "S")]


def test_a_deletion_of_more_shares_than_are_left_proves_nothing() -> None:
    assert len(unseen_cancels(day("1,7,100,500,1", "3,7,150,500,1"))) == 0


def test_the_events_given_are_not_changed() -> None:
    events = day("1,7,400,500,-1", "3,7,200,500,-1", "3,6,5,500,1")
    before = events.tobytes()
    complete_day(events)
    assert events.tobytes() == before


def test_an_empty_day() -> None:
    assert len(complete_day(np.zeros(0, EVENT))) == 0


def test_reading_a_day(tmp_path: Path) -> None:
    path = tmp_path / "AMZN_2012-06-21_34200000_57600000_message_1.csv"
    path.write_text("34200.5,1,7,100,500,1\nbad\n34201.5,3,7,100,500,1")
    session, events, anomalies = read_day(path)
    assert session.directory.symbol(1) == "AMZN"
    assert rows(events) == [(1, "A", 7, 100, 500, "B"), (3, "D", 7, 100, 500, "B")]
    assert anomalies.to_json() == {"bad_line": {"count": 1, "first_at": [22]}}
    with pytest.raises(InputError):
        read_day(tmp_path / "absent.csv")


def test_the_example_of_the_docs_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "lobster.md").read_text()
    (example,) = re.findall(r"```python\n(.*?)```", page, re.S)
    name = "AMZN_2012-06-21_34200000_57600000_message_5.csv"
    (tmp_path / name).write_text("34200.5,4,7,100,500,1\n34201.5,3,7,100,500,1\n")
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    exec(compile(example, "docs/lobster.md", "exec"), scope)
    assert name in example
    assert scope["book"].live_orders() == 0  # type: ignore[attr-defined]
