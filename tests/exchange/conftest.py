"""The matching engine under the exchange, and books that its feed makes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from trident_core.contracts import Kind
from trident_core.dtypes import EVENT
from trident_core.plugins import registry
from trident_core.session import Session
from trident_exchange.exchange import select_matcher


@pytest.fixture(autouse=True)
def _without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser is asked for its encoder only, which all engines share; processes start in a second then."""
    monkeypatch.setenv("TRIDENT_PARSER", "reference")


@pytest.fixture
def make_matcher() -> Any:
    return select_matcher("reference")[1]


@pytest.fixture
def replay() -> Callable[[bytes, Session], str]:
    """Digest of the books that framed ITCH makes, by the reference engines."""

    def run(framed: bytes, session: Session) -> str:
        parser = registry().select(Kind.PARSER, "reference").make(session)
        book = registry().select(Kind.BOOK, "reference").make(session)
        events = np.zeros(1 << 12, EVENT)
        data = np.frombuffer(framed, np.uint8)
        while len(data):
            consumed, count, _ = parser.parse_into(data, events)
            book.apply(events[:count])
            data = data[consumed:]
        assert not parser.anomalies
        assert not book.anomalies, book.anomalies
        return str(book.digest().hex())

    return run
