"""Days for the tests of the Python API, and the truth about them: one pass with the reference engines."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_book.reference import ReferenceBook
from trident_core.dtypes import EFFECT, TOP
from trident_core.session import Session
from trident_core.tables.catalog import TABLES
from trident_core.tables.collect import Collector, TableOptions
from trident_core.tables.tap import TappedParser
from trident_parser.reference import ReferenceParser
from trident_sim.files import write_day
from trident_sim.spec import SimSpec


class Truth:
    """All tables of some framed messages, and their books, by the plain way."""

    def __init__(self, data: bytes, session: Session, *, lenient: bool = False, depth: int = 3) -> None:
        parser = TappedParser(
            ReferenceParser(session, lenient=lenient), ReferenceParser(Session(), lenient=lenient), "IVKOR"
        )
        from trident_core.decode import events_of

        self.session = session
        self.events = events_of(data, parser)
        self.tops, self.effects = np.zeros(len(self.events), TOP), np.zeros(len(self.events), EFFECT)
        self.book = ReferenceBook(session)
        self.book.apply(self.events, self.tops, self.effects)
        found: dict[str, list[np.ndarray]] = {}
        collector = Collector(
            session, dict(TABLES), lambda name, rows: found.setdefault(name, []).append(rows),
            options=TableOptions(depth=depth, bars=("1m",)), tap=parser,
        )  # fmt: skip
        collector(self.events, self.tops, self.effects)
        collector.finish()
        self.tables = {name: np.concatenate(rows) for name, rows in found.items()}
        self.counts = parser.counts

    def table(self, name: str) -> np.ndarray:
        return self.tables.get("bars_1m" if name == "bars" else name, np.zeros(0))

    def book_at(self, ts: int) -> ReferenceBook:
        """All books before the first event that is later than `ts`."""
        later = self.events["ts"] > ts
        book = ReferenceBook(self.session)
        book.apply(self.events[: int(later.argmax()) if later.any() else len(later)])
        return book


@pytest.fixture(scope="session")
def truth() -> Callable[..., Truth]:
    return Truth


@pytest.fixture(scope="session")
def make_day(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    def make(**spec: Any) -> Path:
        path = tmp_path_factory.mktemp("day") / "12302019.NASDAQ_ITCH50"
        write_day(path, SimSpec(**spec))
        return path

    return make


@pytest.fixture(scope="session")
def odd_day(make_day: Callable[..., Path]) -> Path:
    """A small day, 8 % of it wrong on purpose."""
    return make_day(messages=6_000, symbols=10, seed=3, anomalies=0.08)


@pytest.fixture(scope="session")
def odd_truth(odd_day: Path) -> Truth:
    return Truth(odd_day.read_bytes(), Session(date=dt.date(2019, 12, 30)))


@pytest.fixture(scope="module")
def small_spans() -> Iterator[None]:
    """An index with many spans and batches, also on a small day, in all tests of a module."""
    from trident_core.day import index, inputs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "BATCH", 128)
        patch.setattr(index, "BATCH", 128)
        patch.setattr(index, "SPAN", 700)
        yield
