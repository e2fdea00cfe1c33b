"""LOBSTER's own order book judges ours: real days, another wire format, another reconstruction.

LOBSTER publishes a message file and, row for row, the best levels after each message. Message k applied to
row k-1 gives row k, once levels that enter from below the recorded depth are left out. Here our line (feed,
parser, book) applies message k, and what the book says it did must turn row k-1 into row k.
"""

from __future__ import annotations

import dataclasses
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core.dtypes import EFFECT, Outcome
from trident_core.session import Session
from trident_parser.lobster_gaps import complete_day, opening_orders, read_day, unseen_cancels

Levels = list[tuple[int, int]]  # (price, quantity), best first
Array = np.ndarray[Any, Any]

BID, ASK = ord("B"), ord("S")
#: How often our book's own levels are compared with LOBSTER's, in messages.
CHECKPOINT = 1024


class Case(NamedTuple):
    ticker: str
    depth: int
    messages: int
    opening: int  # orders that the file touches without having added them
    unseen: int  # deletions of fewer shares than the messages leave
    appeared: int  # levels that an add makes within the recorded depth
    vanished: int  # levels that lose their last order there


CASES = [
    Case("AMZN", 1, 57_515, 6_700, 1, 13_604, 13_953),
    Case("AMZN", 5, 155_935, 8_021, 5, 35_386, 33_840),
    Case("GOOG", 1, 49_482, 3_822, 0, 12_877, 11_207),
]


@dataclass
class Day:
    """One sample: our events, and LOBSTER's rows: side -> i64[n, depth, 2], (price, quantity), best first."""

    session: Session
    events: Array
    rows: dict[int, Array]
    depth: int

    def start(self, messages: int) -> Day:
        """The first messages, as a day of its own that may be changed."""
        rows = {side: levels[:messages].copy() for side, levels in self.rows.items()}
        return Day(self.session, self.events[:messages].copy(), rows, self.depth)

    def levels(self, side: int, k: int) -> Levels:
        """Row k of one side. Quantity 0: no such level (the price is a dummy)."""
        return [(price, quantity) for price, quantity in self.rows[side][k].tolist() if quantity]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"{case.ticker}-{case.depth}")
def case(request: pytest.FixtureRequest) -> Case:
    return cast(Case, request.param)


@pytest.fixture(scope="module")
def day(case: Case, shared: Callable[..., Path]) -> Day:
    return load(shared("data", "lobster_2012-06-21", sample_name(case)), case.depth)


@pytest.fixture(scope="module")
def replay(day: Day) -> Replay:
    return replay_of(day)


@pytest.fixture(scope="module")
def morning(shared: Callable[..., Path]) -> Day:
    """The first 6,000 messages of AMZN, five levels: for what must fail."""
    return load(shared("data", "lobster_2012-06-21", sample_name(CASES[1])), 5).start(6_000)


def sample_name(case: Case) -> str:
    return f"LOBSTER_SampleFile_{case.ticker}_2012-06-21_{case.depth}.zip"


@lru_cache(maxsize=3)
def load(path: Path, depth: int) -> Day:
    session, events, anomalies = read_day(path)
    assert not anomalies
    with zipfile.ZipFile(path) as archive:
        (member,) = (name for name in archive.namelist() if "_orderbook_" in name)
        text = archive.read(member).decode().rstrip().replace("\n", ",")
    table = np.fromstring(text, np.int64, sep=",").reshape(-1, depth, 2, 2)
    assert len(table) == len(events)
    return Day(session, events, {ASK: table[:, :, 0], BID: table[:, :, 1]}, depth)


# --- what our book says -------------------------------------------------------------------------------------


@dataclass
class Replay:
    """Of each message, the side (0: none), the price and the change of quantity there, by the book's effects.

    `snapshots`: message -> side -> the book's own levels after it, price -> quantity. `unseen`: the message
    before which shares went unseen -> (side, price, shares).
    """

    book: ReferenceBook
    sides: Array
    prices: Array
    changes: Array
    outcomes: Array
    snapshots: dict[int, dict[int, dict[int, int]]]
    unseen: dict[int, tuple[int, int, int]]


def replay_of(day: Day, supplement: bool = True) -> Replay:
    """Apply the day with what the file leaves out supplied; without `supplement`, only the opening orders."""
    events, opening = day.events, opening_orders(day.events)
    cancels = unseen_cancels(events) if supplement else events[:0]
    stream = complete_day(events) if supplement else np.concatenate([opening, events])
    numbers = np.arange(len(events))
    places = np.searchsorted(events["seq"], cancels["seq"])
    where = len(opening) + numbers + np.searchsorted(places, numbers, side="right")
    assert stream[where].tobytes() == events.tobytes()

    book = ReferenceBook(day.session)
    effects = np.zeros(len(stream), EFFECT)
    snapshots, done = {}, 0
    for start in range(0, len(events), CHECKPOINT):
        last = min(start + CHECKPOINT, len(events)) - 1
        part = slice(done, done := int(where[last]) + 1)
        book.apply(stream[part], None, effects[part])
        snapshots[last] = {
            side: {int(level["price"]): int(level["qty"]) for level in book.levels(1, chr(side))}
            for side in (BID, ASK)
        }
    own = effects[where]
    sign = np.where(events["type"] == ord("A"), 1, -1)
    unseen = {
        int(place): (int(e["side"]), int(e["price"]), int(e["qty"]))
        for place, e in zip(places, np.delete(effects, where)[len(opening) :], strict=True)
    }
    changes = sign * own["qty"].astype(np.int64)
    return Replay(book, own["side"], own["price"], changes, own["outcome"], snapshots, unseen)


# --- the judge ----------------------------------------------------------------------------------------------


@dataclass
class Verdict:
    transitions: int = 0
    mismatches: list[int] = field(default_factory=list)  # k of the transitions k-1 -> k that fail
    counts: Counter[str] = field(default_factory=Counter)


def judge(day: Day, replay: Replay) -> Verdict:
    """Hold every transition of LOBSTER's rows against what the book did.

    The side that the message does not touch must stay as it is; the other must be row k-1 with the change,
    position for position. Two things are LOBSTER's and not the message's: the level that falls out at the
    bottom when an add makes one too many, and one that enters at the very bottom, worse than all that was
    seen before, when the message has taken a level away. What the book had to clamp, evict or refuse fails.
    """
    verdict = Verdict(transitions=len(day.events) - 1)
    same = {s: (rows[1:] == rows[:-1]).all(axis=(1, 2)).tolist() for s, rows in day.rows.items()}
    columns = (replay.sides, replay.prices, replay.changes, replay.outcomes)
    messages = list(zip(*(column.tolist() for column in columns), strict=True))
    for k, (side, price, change, outcome) in enumerate(messages[1:], 1):
        good = outcome in (Outcome.NONE, Outcome.APPLIED)
        for s, sign in ((BID, -1), (ASK, 1)):
            if s == side:
                before, after = day.levels(s, k - 1), day.levels(s, k)
                good &= follows(before, after, (price, change), sign, day.depth, verdict.counts)
            else:
                good &= same[s][k - 1]
        if not good:
            verdict.mismatches.append(k)
    return verdict


def follows(
    before: Levels, after: Levels, message: tuple[int, int], sign: int, depth: int, counts: Counter[str]
) -> bool:
    """Is `after` what the message's change makes of `before`? A change that no row shows is refused, too."""
    price, change = message
    quantities = dict(before)
    quantity = quantities.get(price, 0) + change
    if change == 0 or quantity < 0:
        return False
    counts["appeared"] += price not in quantities
    counts["vanished"] += quantity == 0
    quantities[price] = quantity
    if not quantity:
        del quantities[price]
    expected = sorted(quantities.items(), key=lambda level: sign * level[0])
    if len(expected) > depth:
        counts["fell out"] += 1
        if expected.pop()[0] == price:
            return False
    new = after[len(expected) :]
    counts["entered"] += len(new)
    below = sign * before[-1][0] if before else 0
    return after[: len(expected)] == expected and (
        not new or (len(before) == depth and quantity == 0 and sign * new[0][0] > below)
    )


# --- the judgement ------------------------------------------------------------------------------------------


def test_the_book_reproduces_every_transition(case: Case, day: Day, replay: Replay) -> None:
    verdict = judge(day, replay)
    assert verdict.mismatches == []
    assert verdict.transitions == case.messages - 1
    assert verdict.counts["appeared"] == verdict.counts["fell out"] == case.appeared
    assert verdict.counts["vanished"] == verdict.counts["entered"] == case.vanished


def test_every_reference_resolves(case: Case, day: Day, replay: Replay) -> None:
    assert len(opening_orders(day.events)) == case.opening
    about_orders = np.isin(day.events["type"], np.frombuffer(b"AXDE", np.uint8))
    assert (replay.outcomes[about_orders] == Outcome.APPLIED).all()
    assert (replay.outcomes[~about_orders] == Outcome.NONE).all()
    # Orders that left while their level was not recorded stay at the head of its queue.
    assert set(replay.book.anomalies) <= {"not_at_head"}
    assert replay.book.validate() == []


def test_the_books_levels_differ_by_what_the_file_never_touches(day: Day, replay: Replay) -> None:
    """LOBSTER's quantity minus the book's is constant for as long as a level is seen.

    The book's levels are followed through what it says it did, and compared with what it shows now and then.
    """
    levels: dict[int, Counter[int]] = {BID: Counter(), ASK: Counter()}
    for order in opening_orders(day.events):
        levels[int(order["side"])][int(order["price"])] += int(order["qty"])
    differences: dict[int, dict[int, int]] = {BID: {}, ASK: {}}
    columns = (replay.sides, replay.prices, replay.changes)
    for k, (side, price, change) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        if k in replay.unseen:
            lost_side, lost_price, shares = replay.unseen[k]
            levels[lost_side][lost_price] -= shares
            differences[lost_side][lost_price] += shares
        levels[side or BID][price] += change
        for s in (side,) if side and k else (BID, ASK):
            now = {p: quantity - levels[s][p] for p, quantity in day.levels(s, k)}
            before = differences[s]
            assert all(now[p] == before[p] for p in now.keys() & before.keys()), k
            differences[s] = now
        if k in replay.snapshots:
            assert replay.snapshots[k] == {s: {p: q for p, q in levels[s].items() if q} for s in levels}
    assert max(replay.snapshots) == len(day.events) - 1


def test_shares_went_unseen_only_while_their_level_was(case: Case, day: Day, replay: Replay) -> None:
    """Each cancel that we supply is of an order whose level LOBSTER did not record for a while."""
    assert len(replay.unseen) == case.unseen
    for k, (side, price, _) in replay.unseen.items():
        previous = np.flatnonzero(day.events["ref"][:k] == day.events["ref"][k])[-1]
        assert any(price not in dict(day.levels(side, row)) for row in range(previous, k))


@pytest.mark.slow
def test_without_the_unseen_cancels_just_their_deletions_fail(day: Day, replay: Replay) -> None:
    plain = replay_of(day, supplement=False)
    assert judge(day, plain).mismatches == sorted(replay.unseen)


# --- the judge can say no -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_book_that_ignores_partial_cancels_fails_at_each(day: Day, replay: Replay) -> None:
    cancels = np.flatnonzero(day.events["type"] == ord("X"))
    sides = replay.sides.copy()
    sides[cancels] = 0
    assert judge(day, dataclasses.replace(replay, sides=sides)).mismatches == cancels.tolist()


@pytest.mark.parametrize(
    ("letter", "column", "wrong"),
    [
        ("A", "qty", lambda event: event["qty"] + 1),
        ("A", "price", lambda event: event["price"] + 100),
        ("A", "side", lambda event: BID + ASK - event["side"]),
        ("A", "type", lambda _: ord("P")),
        ("D", "type", lambda _: ord("P")),
        ("X", "qty", lambda event: event["qty"] + 1),
        ("E", "qty", lambda event: event["qty"] + 1),
        ("E", "type", lambda _: ord("P")),
        ("P", "type", lambda _: ord("A")),
    ],
)
def test_one_wrong_message_is_noticed(
    morning: Day, letter: str, column: str, wrong: Callable[[Any], int]
) -> None:
    for k in np.flatnonzero(morning.events["type"] == ord(letter))[-2:].tolist():
        changed = morning.start(len(morning.events))
        changed.events[column][k] = wrong(changed.events[k])
        assert k in judge(changed, replay_of(changed)).mismatches


def test_a_deletion_of_another_order_is_noticed(morning: Day) -> None:
    events = morning.events
    added = events["ref"][:1_000][events["type"][:1_000] == ord("A")]
    deletions = np.flatnonzero((events["type"] == ord("D")) & np.isin(events["ref"], added))
    one = int(deletions[deletions >= 1_000][0])
    other = next(int(k) for k in deletions if k > one and events["price"][k] != events["price"][one])
    changed = morning.start(len(events))
    changed.events["ref"][[one, other]] = events["ref"][[other, one]]
    assert judge(changed, replay_of(changed)).mismatches == [one, other]


@pytest.mark.parametrize("position", [0, 4])
def test_one_wrong_row_is_noticed_twice(morning: Day, position: int) -> None:
    replay = replay_of(morning)
    assert judge(morning, replay).mismatches == []
    changed = morning.start(len(morning.events))
    changed.rows[BID][3_000, position, 1] += 1
    assert judge(changed, replay).mismatches == [3_000, 3_001]
