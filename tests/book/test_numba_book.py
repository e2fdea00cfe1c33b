"""The numba book against the reference: any stream, any split, with and without outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_book import records
from trident_book.numba_book import NumbaBook
from trident_book.plugin import trident_register_books
from trident_book.reference import ReferenceBook
from trident_conformance import drive, streams
from trident_core.contracts import Book
from trident_core.decode import events_of
from trident_core.dtypes import EFFECT, EVENT, TOP
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_parser.reference import ReferenceParser

U64 = (1 << 64) - 1
# Neighbours, far apart, and the ends of 64 bits.
REFS = st.sampled_from([0, 1, 2, 3, 8, 9, 1 << 20, 1 << 40, (1 << 63) + 5, U64 - 8, U64 - 1, U64])
PRICES = st.sampled_from([0, 1, 2, 3, 10_000, (1 << 31) - 1, 1 << 31, -1, -5, -(1 << 63), (1 << 63) - 1])
QTYS = st.sampled_from([0, 1, 1, 2, 3, 100, (1 << 32) - 1, 1 << 32, U64 - 1, U64])
LOCATES = st.sampled_from([0, 1, 1, 2, 65_535, 65_536, 1 << 20, (1 << 32) - 1])
AUX = st.sampled_from([b"", b"T", b"H", b"P", b"Q", b"Z", b"\xff" * 8, b"NITE"])
ROW = st.tuples(
    REFS, REFS, PRICES, QTYS, LOCATES, st.sampled_from("AAAAFEEECXXDUUUHPSz"),
    st.sampled_from("BBBSSS N\xff"), AUX,
)  # fmt: skip


def hostile(rows: list[tuple[Any, ...]]) -> np.ndarray:
    events = np.zeros(len(rows), EVENT)
    for i, (ref, ref2, price, qty, locate, letter, side, aux) in enumerate(rows):
        events[i] = (
            3 * i + 1, i // 2, ref, ref2, price, qty, locate, ord(letter), ord(side), 0,
            tuple(aux.ljust(8, b"\0")),
        )  # fmt: skip
    return events


def numba_book(batches: list[np.ndarray]) -> drive.Applied:
    """What the book says, which is the same whether it looks ahead or not."""
    applied = []
    for ahead_from in (0, 1 << 40):
        book = NumbaBook(Session())
        book._state.g[records.AHEAD_FROM] = ahead_from
        applied.append(drive.apply(book, batches))
        assert book.validate() == []
    drive.alike(*applied)
    return applied[0]


def reference_book(events: np.ndarray) -> drive.Applied:
    return drive.apply(ReferenceBook(Session()), [events])


def test_the_plugin_registers_it_first():
    spec = trident_register_books()[0]
    assert spec.name == "numba"
    assert spec.load() is NumbaBook
    checked: Book = NumbaBook(Session())
    assert checked.apply(np.zeros(0, EVENT)) == 0


@settings(max_examples=400, deadline=None)
@given(rows=st.lists(ROW, max_size=60), sizes=st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_hostile_columns(rows, sizes):
    events = hostile(rows)
    drive.alike(numba_book(drive.batches(events, sizes)), reference_book(events))


@settings(max_examples=100, deadline=None)
@given(events=streams.wild_events())
def test_any_bytes(events):
    drive.alike(numba_book([events]), reference_book(events))


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(ROW, max_size=60), data=st.data())
def test_outputs_not_asked_for_change_nothing(rows, data):
    """Each batch with neither, one or both outputs: the rows that were asked for are the reference's."""
    events = hostile(rows)
    expected_tops, expected_effects = np.zeros(len(events), TOP), np.zeros(len(events), EFFECT)
    ReferenceBook(Session()).apply(events, expected_tops, expected_effects)
    book, at = NumbaBook(Session()), 0
    for part in drive.batches(events, [5, 3, 11]):
        tops, effects = np.zeros(len(part), TOP), np.zeros(len(part), EFFECT)
        with_tops, with_effects = data.draw(st.booleans()), data.draw(st.booleans())
        book.apply(part, tops if with_tops else None, effects if with_effects else None)
        if with_tops:
            drive.same(tops, expected_tops[at : at + len(part)], "tops")
        if with_effects:
            drive.same(effects, expected_effects[at : at + len(part)], "effects")
        at += len(part)
    assert drive.read(book, tops=None, effects=None).digest == reference_book(events).digest


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sizes", [[1, 7, 64], [100_000]])
def test_a_day_by_chance(chance, seed, sizes):
    events = chance(seed, 4_000, symbols=3 + seed, anomalies=0.15 * seed)
    drive.alike(numba_book(drive.batches(events, sizes)), reference_book(events))


@pytest.mark.parametrize(("messages", "symbols", "anomalies"), [(40_000, 20, 0.0), (60_000, 300, 0.02)])
def test_a_simulated_day(messages, symbols, anomalies):
    from trident_sim.spec import SimSpec
    from trident_sim.stream import Day

    day = Day(SimSpec(messages=messages, symbols=symbols, seed=5, anomalies=anomalies), batch=4_096)
    book, law = NumbaBook(Session()), ReferenceBook(Session())
    for events in day.batches():
        n = len(events)
        tops, effects = drive.canaries(n, TOP), drive.canaries(n, EFFECT)
        expected_tops, expected_effects = np.zeros(n, TOP), np.zeros(n, EFFECT)
        book.apply(events, tops, effects)
        law.apply(events, expected_tops, expected_effects)
        drive.same(tops, expected_tops, "tops")
        drive.same(effects, expected_effects, "effects")
    none = np.zeros(0, TOP), np.zeros(0, EFFECT)
    drive.alike(drive.read(book, *none), drive.read(law, *none))
    assert book.validate() == []
    assert bool(book.anomalies) >= bool(anomalies)


@pytest.mark.shared
def test_a_real_day(shared):
    data = shared("data", "itch50_runk", "locate-13-10k.bin").read_bytes()
    events = events_of(data, ReferenceParser(Session()))
    assert len(events) == 10_000
    drive.alike(numba_book(drive.batches(events, [1, 500, 77])), reference_book(events))


@pytest.mark.parametrize("batch", [1, 3, 24, 1000])
def test_a_level_of_many_orders_and_a_side_of_many_levels(batch):
    """Chunks grow to hundreds of levels and shrink again; queues are cut at head, tail and in between."""
    rng = np.random.default_rng(batch)
    n = 1_200
    events = np.zeros(3 * n, EVENT)
    events["seq"] = np.arange(1, 3 * n + 1)
    events["locate"] = 7
    adds, cuts, deletes = events[:n], events[n : 2 * n], events[2 * n :]
    adds["type"], adds["ref"], adds["qty"] = ord("A"), np.arange(n), 10
    adds["side"] = np.where(rng.random(n) < 0.5, ord("B"), ord("S"))
    adds["price"] = np.where(rng.random(n) < 0.3, 500, rng.integers(0, 1 << 31, n))
    cuts["type"], cuts["ref"], cuts["qty"] = ord("E"), rng.integers(0, n, n), rng.integers(1, 12, n)
    deletes["type"], deletes["ref"] = ord("D"), rng.permutation(n)
    drive.alike(numba_book(drive.batches(events, [batch])), reference_book(events))
    half = NumbaBook(Session())
    half.apply(events[:n])
    assert len(half.levels(7, "B")) > 256


def test_arrays_may_be_strided_and_unaligned(chance):
    events = chance(3, 400)
    expected = reference_book(events)
    raw = np.zeros(len(events) * 64 + 1, np.uint8)
    raw[1:] = events.view(np.uint8)
    unaligned = raw[1:].view(EVENT)
    assert not unaligned.flags.aligned
    book = NumbaBook(Session())
    tops = np.zeros(2 * len(events), TOP)[::2]
    effects = np.zeros(3 * len(events), EFFECT)[::3]
    assert book.apply(unaligned, tops, effects) == len(events)
    drive.alike(drive.read(book, tops.copy(), effects.copy()), expected)


def test_longer_strided_outputs_keep_their_other_rows(chance):
    events = chance(3, 40)
    tops = drive.canaries(120, TOP)
    NumbaBook(Session()).apply(events, tops[::2])
    assert set(tops["seq"][1::2].tolist()) == {int("A5" * 8, 16)}
    assert drive.untouched(tops[80:])
    assert tops["seq"][:80:2].tolist() == events["seq"].tolist()


def test_wrong_arrays_are_refused_before_anything_is_applied(chance):
    book = NumbaBook(Session())
    events = chance(1, 20)
    locked = np.zeros(20, TOP)
    locked.flags.writeable = False
    for arguments in (
        (events, np.zeros(19, TOP)),
        (events, locked),
        (events, None, np.zeros(20, TOP)),
        (locked,),
    ):
        with pytest.raises(UsageError):
            book.apply(*arguments)
    assert len(book.locates()) == 0
