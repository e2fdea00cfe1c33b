"""Questions of a real day: 10,000 messages of one symbol, the streaming engine beside the reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trident_core.decode import events_of
from trident_core.session import Session
from trident_parser.numba_parser import NumbaParser
from trident_query.sequence.engines import NumbaSequences, ReferenceSequences

QUESTIONS: list[dict[str, Any]] = [
    {"match": "(A|F) D", "within": "5ms"},
    {"match": "(A|F) (E|C)+ D"},
    {"match": "(A|F) U{2,}"},
    {
        "match": "hit next+",
        "define": ["hit: type in ('E', 'C')", "next: type in ('E', 'C') and ts - prev(ts) <= 50us"],
        "per": "symbol",
    },
    {
        "match": "quote{5}",
        "define": ["quote: type in ('A', 'F', 'D', 'U')"],
        "per": "symbol",
        "within": "1ms",
    },
]


@pytest.mark.shared
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q["match"])
def test_a_real_day_gives_the_same(question: dict[str, Any], shared: Callable[..., Path]) -> None:
    session = Session()
    raw = np.fromfile(shared("data", "itch50_runk", "locate-13-10k.bin"), np.uint8)
    events = events_of(raw, NumbaParser(session))
    reference = ReferenceSequences().search(session=session, **question)
    reference.feed(events)
    wanted = reference.finish()
    search = NumbaSequences().search(session=session, **question)
    found = [search.feed(events[at : at + 999]) for at in range(0, len(events), 999)]
    made = np.concatenate([*found, search.finish()])
    assert np.sort(made, order=["last", "first"]).tolist() == wanted.tolist()
    assert len(made)
