"""What the demo shows at its end: trades by symbol, the busiest depth, and patterns found in the store."""

from __future__ import annotations

import re
import shlex
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from trident_core.cli.output import number, printable, program, table
from trident_core.session import format_price, format_time, parse_time
from trident_core.tables import trades

if TYPE_CHECKING:
    from rich.console import Console

    from trident_core.contracts import Book, Query, Snapshot
    from trident_core.dtypes import Effects, Events, Levels, Tops
    from trident_core.session import Session

#: Up to this time of day the watch remembers the deepest book; after it books only empty.
CLOSE: Final = parse_time("16:00")
LOCATES: Final = 1 << 16
SYMBOL_ROWS: Final = 8
DEPTH_ROWS: Final = 5


@dataclass(slots=True)
class Tape:
    """Prints of one symbol: counts, volume, turnover (price x quantity) and prices, as integers."""

    count: int = 0
    volume: int = 0
    turnover: int = 0
    high: int = 0
    low: int = 0
    last: int = 0


@dataclass(slots=True)
class DayWatch:
    """Watches the batches of a run: every symbol's tape, and the busiest symbol's depth before the close."""

    book: Book
    session: Session
    tapes: dict[int, Tape] = field(default_factory=dict)
    messages: Any = field(default_factory=lambda: np.zeros(LOCATES, np.int64))
    depth: tuple[int, int, Levels, Levels] | None = None  # locate, ts, bids, asks

    def __call__(self, events: Events, tops: Tops, effects: Effects) -> None:
        self._count(events)
        rows = trades(events, effects, self.session, tops)
        rows = rows[(rows["kind"] != b"B") & (rows["size"] > 0)]
        for locate in np.unique(rows["locate"]):
            self._print(int(locate), rows[rows["locate"] == locate])
        if len(events) and events["ts"][-1] <= CLOSE:
            self._remember_depth(int(events["ts"][-1]))

    def _count(self, events: Events) -> None:
        inside = events["locate"][events["locate"] < LOCATES]
        self.messages += np.bincount(inside, minlength=LOCATES)
        self.messages[0] = 0

    def _print(self, locate: int, rows: Any) -> None:
        tape = self.tapes.setdefault(locate, Tape())
        price, size = rows["price"].astype(object), rows["size"].astype(object)  # exact, of any size
        tape.count += len(rows)
        tape.volume += int(size.sum())
        tape.turnover += int((price * size).sum())
        tape.high = max(tape.high, int(rows["price"].max()))
        low = int(rows["price"].min())
        tape.low = min(tape.low, low) if tape.low else low
        tape.last = int(rows["price"][-1])

    def _remember_depth(self, ts: int) -> None:
        locate = int(self.messages.argmax())
        bids, asks = (self.book.levels(locate, side, DEPTH_ROWS) for side in "BS")
        if len(bids) and len(asks):
            self.depth = (locate, ts, bids, asks)

    def busiest(self) -> list[int]:
        """Locates with the most messages, at most SYMBOL_ROWS."""
        order = np.argsort(-self.messages, kind="stable")[:SYMBOL_ROWS]
        return [int(locate) for locate in order if self.messages[locate]]

    def suggestion(self, file: str) -> str:
        """A replay that shows something: the busiest symbol, when its depth was remembered."""
        command = f"{program()} replay {shlex.quote(printable(file))}"
        locate = self.depth[0] if self.depth else next(iter(self.busiest()), 0)
        symbol = self.session.directory.symbol(locate)
        command += f" --symbols {shlex.quote(symbol)}" if symbol else ""
        return command + (f" --at {format_time(self.depth[1])}" if self.depth else "")

    def to_json(self) -> list[dict[str, Any]]:
        rows = []
        for locate in self.busiest():
            tape = self.tapes.get(locate, Tape())
            rows.append(
                {
                    "symbol": self.session.directory.symbol(locate) or f"locate {locate}",
                    "messages": int(self.messages[locate]),
                    "prints": tape.count,
                    "volume": tape.volume,
                    "vwap": tape.turnover / tape.volume if tape.volume else None,
                    "high": tape.high,
                    "low": tape.low,
                    "last": tape.last,
                }
            )
        return rows


@dataclass(frozen=True, slots=True)
class Answer:
    """One pattern search: what was asked, how many events, how long it took."""

    options: str
    question: str
    count: int
    seconds: float


def ask(snapshot: Snapshot, engine: Query, watch: DayWatch) -> list[Answer]:
    """A few searches that this day has answers to."""
    from trident_core.search import find

    symbols = [watch.session.directory.symbol(locate) for locate in watch.busiest()]
    busiest = symbols[0] if symbols else "A"
    questions: list[tuple[str, dict[str, str]]] = [
        (f"every event of {busiest}", {"symbol": f"^{re.escape(busiest)}$"}),
        ("executions of symbols from A to M", {"symbol": "^[A-M]", "types": "[EC]"}),
        ("orders attributed to a firm", {"mpid": "^[A-Z]{4}$", "types": "F"}),
        ("halts, pauses and crosses", {"types": "[HJKQhW]"}),
    ]
    answers = []
    for question, criteria in questions:
        began = time.perf_counter()
        count = find(snapshot, engine, **criteria).count()  # type: ignore[arg-type]
        names = {"symbol": "--symbol", "types": "--type", "mpid": "--mpid"}
        options = " ".join(f"{names[key]} {shlex.quote(value)}" for key, value in criteria.items())
        answers.append(Answer(options, question, count, time.perf_counter() - began))
    return answers


def render_watch(out: Console, watch: DayWatch) -> None:
    """The most active symbols, and the depth of the busiest one before the close."""
    decimals = watch.session.price_decimals
    rows = table(
        "most active symbols", "symbol", ">messages", ">prints", ">volume", ">VWAP", ">low", ">high", ">last"
    )
    for row in watch.to_json():
        vwap = format_price(round(row["vwap"]), decimals) if row["volume"] else "-"
        prices = [
            format_price(row[key], decimals) if row["prints"] else "-" for key in ("low", "high", "last")
        ]
        rows.add_row(
            row["symbol"],
            number(row["messages"]),
            number(row["prints"]),
            number(row["volume"]),
            vwap,
            *prices,
        )
    out.print(rows)
    if watch.depth:
        from trident_core.cli.replay import CROSSED_NOTE, depth_table

        locate, ts, bids, asks = watch.depth
        title = f"{watch.session.directory.symbol(locate) or f'locate {locate}'} at {format_time(ts)}"
        out.print(depth_table(title, bids, asks, decimals))
        if bids["price"][0] > asks["price"][0]:
            out.print(CROSSED_NOTE)
    else:
        out.print("no depth to show: the busiest symbol had no orders on both sides at the end of a batch")


def render_answers(out: Console, store: str, answers: list[Answer]) -> None:
    """What was asked and found, then the commands that ask the same."""
    rows = table("answers from the store", "question", ">events", ">ms")
    for answer in answers:
        rows.add_row(answer.question, number(answer.count), f"{answer.seconds * 1e3:.1f}")
    out.print(rows)
    for answer in answers:
        print(f"  {program()} query {shlex.quote(printable(store))} {printable(answer.options)} --count")
