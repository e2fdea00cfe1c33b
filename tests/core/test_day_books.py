"""Books at a time of day are those of a replay up to it; the index gives any symbol's events as they came."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import trident_core as trident
from trident_core.day import lookup
from trident_core.dtypes import EVENT, TOP
from trident_core.session import Instrument, Session
from trident_parser.reference import ReferenceParser

NOON = 12 * 3600 * 10**9
SYMBOLS = ("AA", "BB", "CC", "DD")


def check(day, truth, symbol: str, ts: int) -> None:
    """`book_at` is what a replay with the reference engines has."""
    snapshot, book = day.book_at(symbol, ts), truth.book_at(ts)
    locate = truth.session.directory.locate(symbol)
    assert (snapshot.symbol, snapshot.locate, snapshot.ts) == (symbol, locate, ts)
    assert snapshot.bids.tolist() == book.levels(locate, "B").tolist()
    assert snapshot.asks.tolist() == book.levels(locate, "S").tolist()
    for name in ("ref", "price", "qty", "ts", "locate", "mpid", "side"):
        assert np.array_equal(snapshot.orders[name], book.orders(locate)[name]), name
    assert snapshot.state == book.state(locate)
    for name in TOP.names:
        assert snapshot.top[name] == book.top(locate)[name], name


@pytest.fixture
def checkpoints(monkeypatch) -> None:
    monkeypatch.setattr(lookup, "INTERVAL", 32)


@pytest.fixture(params=["index", "input"])
def odd(request, odd_day, small_spans, checkpoints):
    with trident.open(odd_day, cache=None if request.param == "index" else False) as day:
        yield day


def test_books_over_the_day(odd, odd_truth):
    events = odd_truth.events
    times = np.linspace(int(events["ts"][0]) - 1, int(events["ts"][-1]) + 1, 12).astype(int).tolist()
    for ts in [*times, *times[::-2], int(events["ts"][3000])]:
        check(odd, odd_truth, odd.symbols[ts % 10], ts)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_books_at_any_time_in_any_order(odd_day, odd_truth, small_spans, checkpoints, data):
    """One day is asked again and again, so that look-ups start from what earlier ones left behind."""
    if not hasattr(test_books_at_any_time_in_any_order, "day"):
        test_books_at_any_time_in_any_order.day = trident.open(odd_day)
    day = test_books_at_any_time_in_any_order.day
    n = data.draw(st.integers(0, len(odd_truth.events) - 1))
    ts = max(0, int(odd_truth.events["ts"][n]) + data.draw(st.integers(-1, 1)))
    check(day, odd_truth, day.symbols[data.draw(st.integers(0, 2))], ts)


def test_a_second_look_up_replays_only_what_follows_a_checkpoint(make_day, monkeypatch):
    applied = []
    path = make_day(messages=20_000, symbols=6, seed=5)
    monkeypatch.setattr(lookup, "INTERVAL", 256)
    with trident.open(path) as day:
        symbol = max(day.symbols, key=lambda name: len(day.messages(name)))
        plain = lookup._apply
        monkeypatch.setattr(
            lookup,
            "_apply",
            lambda book, events, last: (applied.append(len(events)), plain(book, events, last)),
        )
        first = day.book_at(symbol, "15:59")
        replayed = sum(applied)
        assert replayed > 3_000
        applied.clear()
        again = day.book_at(symbol, "15:59")
        assert again.orders[["ref", "qty", "ts"]].tolist() == first.orders[["ref", "qty", "ts"]].tolist()
        assert sum(applied) < 256
        applied.clear()
        day.book_at(symbol, "15:30")
        assert sum(applied) < 256


def test_checkpoints_are_bounded(odd_day, odd_truth, small_spans, checkpoints, monkeypatch):
    monkeypatch.setattr(lookup, "MEMORY_MAX", 8_000)
    with trident.open(odd_day) as day:
        for symbol in day.symbols[:3]:
            for ts in (NOON, 2 * NOON, NOON + 10**9):
                check(day, odd_truth, symbol, ts)
                kept = day._lookup._kept.values()
                assert sum(each.bytes() for each in kept) <= 8_000


def test_many_entangled_symbols_have_no_checkpoints(
    odd_day, odd_truth, small_spans, checkpoints, monkeypatch
):
    monkeypatch.setattr(lookup, "GROUP_MAX", 0)
    with trident.open(odd_day) as day:
        for ts in (NOON, NOON + 3600 * 10**9, NOON):
            check(day, odd_truth, day.symbols[4], ts)
        assert not day._lookup._kept


def test_a_snapshot_is_immutable_and_shows_itself(odd, odd_truth):
    symbol = odd.symbols[2]
    snapshot = odd.book_at(symbol, "12:00")
    for array in (snapshot.bids, snapshot.asks, snapshot.orders, snapshot.top):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]
    with pytest.raises(AttributeError):
        snapshot.symbol = "X"
    assert snapshot.spread == snapshot.asks["price"][0] - snapshot.bids["price"][0]
    assert snapshot.mid == (snapshot.asks["price"][0] + snapshot.bids["price"][0]) / 20_000
    assert f"book of {symbol} at 12:00:00.000000000" in repr(snapshot)
    html = snapshot._repr_html_()
    assert html.count("<tr>") == 1 + min(10, max(len(snapshot.bids), len(snapshot.asks)))
    assert f"{snapshot.bids['qty'][0]:,}" in html
    empty = odd.book_at(symbol, 0)
    assert (empty.spread, empty.mid, len(empty.orders)) == (None, None, 0)
    assert "bid none, ask none" in repr(empty)
    assert "0 orders" in empty._repr_html_()


def test_html_escapes_what_a_file_says(tmp_path):
    path = tmp_path / "day.bin"
    write(path, [("A", 1, 1, 0, 100, 5, "B")], symbols=("<b>&",))
    with trident.open(path, feed="itch-file") as day:
        assert "&lt;b&gt;&amp;" in day.book_at("<b>&", "20:00")._repr_html_()
        assert "not read yet" not in day._repr_html_()
    with trident.open(path, feed="itch-file") as day:
        assert "not read yet" in day._repr_html_()


# --- days by chance: few references, so that symbols get into each other's way


def write(path: Path, rows: list[tuple], *, symbols: tuple[str, ...] = SYMBOLS, late: int = 0) -> bytes:
    """Rows of (type, locate, ref, ref2, price, qty, side), 1 ms apart from noon on, as a day file.

    `late`: each third event has the time of the one so many places before it.
    """
    events = np.zeros(len(rows), EVENT)
    for name, values in zip(
        ("locate", "ref", "ref2", "price", "qty"), list(zip(*rows, strict=True))[1:6], strict=True
    ):
        events[name] = values
    events["type"] = [ord(row[0]) for row in rows]
    events["side"] = [ord(row[6]) if row[0] in "AFP" else 0 for row in rows]
    events["seq"] = np.arange(1, len(rows) + 1)
    events["ts"] = NOON + 1_000_000 * np.arange(len(rows))
    events["ts"][::3] -= np.uint64(1_000_000 * late)
    events["aux"][:, :4] = np.where(events["type"] == ord("F"), ord("M"), 0)[:, None]
    events["aux"][events["type"] == ord("H"), 0] = ord("T")
    for letter, unused in (("E", "price"), ("X", "price"), ("D", "price"), ("D", "qty"), ("B", "ref")):
        events[unused][events["type"] == ord(letter)] = 0
    for letter in "AFECXDHBP":
        if letter not in "ECPB":
            events["ref2"][events["type"] == ord(letter)] = 0
    for letter in "HB":
        for name in ("ref", "price", "qty"):
            events[name][events["type"] == ord(letter)] = 0
    session = Session()
    for locate, symbol in enumerate(symbols, 1):
        session.directory.put(Instrument(locate, symbol))
    data = ReferenceParser(session).encode_events(events).tobytes()
    path.write_bytes(data)
    return data


ROW = st.tuples(
    st.sampled_from("AAAAFEECXDUUPBH"), st.integers(1, 4), st.integers(1, 12), st.integers(1, 12),
    st.integers(1, 5), st.integers(0, 4), st.sampled_from("BS"),
)  # fmt: skip


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(rows=st.lists(ROW, min_size=20, max_size=60), n=st.integers(0, 60), late=st.sampled_from([0, 0, 1, 5]))
def test_symbols_that_take_each_others_references(tmp_path, monkeypatch, truth, rows, n, late):
    """Duplicate references across symbols, wrong locates, times that go back: nothing is ever different."""
    from trident_core.day import index, inputs

    monkeypatch.setattr(inputs, "BATCH", 4)
    monkeypatch.setattr(index, "BATCH", 4)
    monkeypatch.setattr(index, "SPAN", 11)
    path = tmp_path / "day.bin"
    halts = [("H", i, 0, 0, 0, 0, "B") for i in (1, 2, 3, 4)]
    plain = truth(write(path, halts + rows, late=late), Session())
    with trident.open(path, feed="itch-file") as day:
        assert day.anomalies.to_json() == plain.book.anomalies.to_json()
        for locate, symbol in enumerate(SYMBOLS, 1):
            for name in ("bbo", "trades", "messages", "depth", "orders", "bars"):
                everything = plain.table(name)
                mine = everything[everything["locate"] == locate].tolist() if len(everything) else []
                assert day.table(name, symbol, levels=3).numpy().tolist() == mine, (name, symbol)
            check(day, plain, symbol, NOON + 1_000_000 * n)
        rows, bounds = plain.table("messages"), sorted((n, n // 2 + 20))
        start, end = (NOON + 1_000_000 * bound for bound in (bounds[0], bounds[1] + 1))
        at = rows["ts_event"] if len(rows) else np.zeros(0)
        assert len(day.messages(start=start, end=end)) == np.count_nonzero((at >= start) & (at < end))
