"""LOBSTER's files of real days through our line and back: the same files, line for line.

A message file leaves out what happens outside the recorded depth, so a book cannot be built of it alone. The
orderbook file beside it tells what is missing: which levels enter from below, with how many shares, and which
fall out. With that added, where no row can show it, the export must write both files again.
"""

from __future__ import annotations

import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.convert_lobster import CLOSE, OPEN
from trident_core.dtypes import EFFECT, EVENT, TOP
from trident_core.export.lobster import LobsterFolder
from trident_core.plugins import registry
from trident_core.session import Session
from trident_core.tables.lobster import LobsterRows
from trident_parser.lobster_gaps import read_day

Level = tuple[int, int]  # side, price
Array = np.ndarray[Any, Any]
BID, ASK = ord("B"), ord("S")
#: References of the orders that stand for all those the file never names.
NAMELESS = 1 << 62

SAMPLES = [("AMZN", 1, 57_515), ("AMZN", 5, 155_935), ("GOOG", 1, 49_482)]


@dataclass
class Files:
    """Both files of a sample, as text and as what they say."""

    session: Session
    events: Array
    messages: list[str]
    books: list[str]
    depth: int
    rows: list[dict[int, dict[int, int]]] = field(default_factory=list)  # side -> price -> shares

    def __post_init__(self) -> None:
        for line in self.books:
            numbers = [int(text) for text in line.split(",")]
            asks, bids = (
                zip(numbers[0::4], numbers[1::4], strict=True),
                zip(numbers[2::4], numbers[3::4], strict=True),
            )
            self.rows.append({ASK: {p: q for p, q in asks if q}, BID: {p: q for p, q in bids if q}})


def load(path: Path, depth: int, messages: int) -> Files:
    session, events, anomalies = read_day(path)
    assert not anomalies
    with zipfile.ZipFile(path) as archive:
        text = {
            kind: archive.read(name).decode().splitlines()
            for name in archive.namelist()
            for kind in ("message", "orderbook")
            if f"_{kind}_" in name
        }
    return Files(session, events[:messages], text["message"][:messages], text["orderbook"][:messages], depth)


def stays(files: Files) -> dict[Level, list[tuple[int, int]]]:
    """Level -> the rows in which it is seen, each stay as (first row, first row without it)."""
    made: dict[Level, list[tuple[int, int]]] = defaultdict(list)
    since: dict[Level, int] = {}
    for k, row in enumerate([*files.rows, {ASK: {}, BID: {}}]):
        now = {(side, price) for side, levels in row.items() for price in levels}
        for level in since.keys() - now:
            made[level].append((since.pop(level), k))
        for level in now - since.keys():
            since[level] = k
    return made


class Completed:
    """The stream of a sample with the orders that its message file does not tell of.

    A level's orders join right before it is seen first, and leave right after it was seen last: outside the
    recorded depth either way.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        names = ("type", "side", "price", "ref", "qty")
        columns = [files.events[name].tolist() for name in names]
        self._messages = list(zip(*columns, strict=True))
        self._at: dict[Level, list[int]] = defaultdict(list)  # level -> its messages
        for k, (kind, side, price, *_) in enumerate(self._messages):
            if chr(kind) in "AXDE":
                self._at[side, price].append(k)
        self._enter: dict[int, list[tuple[Level, int]]] = defaultdict(list)
        self._leave: dict[int, list[Level]] = defaultdict(list)
        for level, intervals in stays(files).items():
            for first, end in intervals:
                self._enter[first].append((level, end))
                self._leave[end].append(level)
        self._live: dict[Level, dict[int, int]] = defaultdict(dict)  # level -> reference -> shares
        self._nameless = NAMELESS
        self.added = self.removed = self.opening = 0

    def stream(self) -> Array:
        parts = list(self._parts())
        made = np.concatenate([np.asarray(part) for part in parts])
        made["seq"] = np.arange(1, len(made) + 1)
        return made

    def _parts(self) -> Iterator[Array]:
        for k, event in enumerate(self._files.events):
            ts = event["ts"]
            for level, end in self._enter[k]:
                yield from self._join(k, level, end, ts if k else 0)  # the first ones, before the window
            yield self._files.events[k : k + 1]
            self._follow(k)
            for level in self._leave[k]:
                for ref in self._live.pop(level, {}):
                    self.removed += 1
                    yield _event("D", ts, ref=ref)

    def _join(self, k: int, level: Level, end: int, ts: int) -> Iterator[Array]:
        side, price = level
        kind, message_side, message_price, _, shares = self._messages[k]
        before = self._files.rows[k][side][price]
        if (message_side, message_price) == level and chr(kind) in "AXDE":
            before += -shares if chr(kind) == "A" else shares
        if k and chr(kind) == "A" and (message_side, message_price) == level:
            assert before == 0  # the message makes the level
        for ref, qty in self._needed(level, k, end).items():
            before -= qty
            yield self._add(level, ref, qty, ts)
        assert before >= 0
        if before:
            self._nameless += 1
            yield self._add(level, self._nameless, before, ts)

    def _needed(self, level: Level, first: int, end: int) -> dict[int, int]:
        """The orders that messages of one stay take from without having added them there: reference -> all
        that they take, and a share more if a partial cancel is the last of them."""
        taken: dict[int, int] = {}
        added: set[int] = set()
        last: dict[int, str] = {}
        for k in self._at[level]:
            if first <= k <= end and k < len(self._messages):
                kind, _, _, ref, qty = self._messages[k]
                last[ref] = chr(kind)
                if chr(kind) == "A":
                    added.add(ref)
                elif ref not in added:
                    taken[ref] = taken.get(ref, 0) + qty
        return {ref: qty + (last[ref] == "X") for ref, qty in taken.items()}

    def _add(self, level: Level, ref: int, qty: int, ts: int) -> Array:
        self.added += 1
        self.opening += not ts
        self._live[level][ref] = qty
        return _event("A", ts, ref=ref, side=level[0], price=level[1], qty=qty)

    def _follow(self, k: int) -> None:
        kind, side, price, ref, qty = self._messages[k]
        orders = self._live[side, price]
        if chr(kind) == "A":
            orders[ref] = qty
        elif chr(kind) in "XDE":
            orders[ref] -= qty
            if not orders[ref]:
                del orders[ref]


def _event(kind: str, ts: int, **columns: int) -> Array:
    made = np.zeros(1, EVENT)
    made["type"], made["ts"], made["locate"] = ord(kind), ts, 1
    for name, value in columns.items():
        made[name] = value
    return made


def export(files: Files, stream: Array, folder: Path) -> tuple[list[str], list[str], dict[str, int]]:
    """Both files as our line writes them, and what it counted."""
    book = registry().select("book", None).load()(files.session)
    out = LobsterFolder(folder, files.session, files.depth, (OPEN, CLOSE))
    rows = LobsterRows(files.session, files.depth, out.put, since=OPEN)
    for start in range(0, len(stream), 1 << 14):
        events = stream[start : start + (1 << 14)]
        tops, effects = np.zeros(len(events), TOP), np.zeros(len(events), EFFECT)
        book.apply(events, tops, effects)
        rows.apply(events, effects, tops)
    assert "unknown_ref" not in book.anomalies
    rows.finish()
    (symbol,) = out.finish(rows.locates())
    texts = [(folder / out.file_name(symbol, kind)).read_text() for kind in ("message", "orderbook")]
    return texts[0].splitlines(), texts[1].splitlines(), rows.counts()


def noisy(line: str) -> bool:
    """Has the time of a message more than 9 decimals? They are float noise, which we round away."""
    return len(line.partition(",")[0].partition(".")[2]) > 9


@pytest.mark.parametrize(
    ("ticker", "depth", "messages"),
    [("AMZN", 5, 6_000), *(pytest.param(*sample, marks=pytest.mark.slow) for sample in SAMPLES)],
)
def test_a_real_day_comes_back_line_for_line(
    shared: Callable[..., Path], tmp_path: Path, ticker: str, depth: int, messages: int
) -> None:
    sample = shared("data", "lobster_2012-06-21", f"LOBSTER_SampleFile_{ticker}_2012-06-21_{depth}.zip")
    files = load(sample, depth, messages)
    completed = Completed(files)
    made, books, counts = export(files, completed.stream(), tmp_path / "out")
    assert len(made) == len(files.messages) == messages
    assert books == files.books
    different = [(mine, theirs) for mine, theirs in zip(made, files.messages, strict=True) if mine != theirs]
    assert len(different) == sum(noisy(line) for line in files.messages) <= 1
    for mine, theirs in different:
        assert mine.partition(",")[2] == theirs.partition(",")[2]
        assert float(mine.partition(",")[0]) == pytest.approx(float(theirs.partition(",")[0]), abs=1e-9)
    # All that was added, and taken out again, within the window was outside the depth.
    assert counts == {"outside_depth": completed.added - completed.opening + completed.removed}
    name = f"{ticker}_2012-06-21_34200000_57600000_message_{depth}.csv"
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        name,
        name.replace("message", "orderbook"),
    }
