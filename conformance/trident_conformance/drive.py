"""What the suites share: driving engines through every split of their input, and comparing what came out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_conformance.evidence import DifferenceError, apart, both, fed, given
from trident_core.contracts import Book, Parser, Status
from trident_core.dtypes import EFFECT, EVENT, LEVEL, ORDER, TOP, Effects, Events, Frames, Tops
from trident_core.stats import Anomaly

#: What arrays are filled with before an engine may write to them.
CANARY = 0xA5

#: Of one locate: top, bids, asks and orders as bytes, and the trading state.
_Reading = tuple[bytes, bytes, bytes, bytes, int]


def same(found: NDArray[Any], expected: NDArray[Any], what: str) -> None:
    """Assert that two arrays of records are equal; say the first difference by row and column."""
    __tracebackhide__ = True
    assert found.dtype == expected.dtype, f"{what}: dtype {found.dtype} instead of {expected.dtype}"
    if len(found) != len(expected):
        raise DifferenceError(f"{what}: {len(found)} rows instead of {len(expected)}", *both(found, expected))
    for column in expected.dtype.names or ():
        differs = found[column] != expected[column]
        rows = np.flatnonzero(differs.any(axis=1) if differs.ndim == 2 else differs)
        if len(rows):
            i = int(rows[0])
            raise DifferenceError(
                f"{what}: row {i}, column {column}: {found[column][i]!r} instead of {expected[column][i]!r} "
                f"({len(rows)} rows differ)",
                *both(found, expected, i),
            )


def equal(what: str, found: Any, expected: Any) -> None:
    """Raise DifferenceError, in words that need no traceback, unless the two are equal."""
    __tracebackhide__ = True
    if found != expected:
        raise DifferenceError(what, *apart(found, expected))


def counted(anomalies: Any) -> dict[str, list[Any]]:
    """name -> [count, first positions]: the form that vectors have."""
    items: Iterable[tuple[str, Anomaly]] = anomalies.items()
    return {name: [item.count, list(item.positions)] for name, item in sorted(items)}


def canaries(n: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """n records of which every byte is CANARY."""
    return np.full(n * dtype.itemsize, CANARY, np.uint8).view(dtype)


def untouched(records: NDArray[Any]) -> bool:
    return bool((records.view(np.uint8) == CANARY).all()) if len(records) else True


# --- parsers ------------------------------------------------------------------------------------------------


@dataclass
class Parsed:
    """All that a parser says about some bytes."""

    events: Events
    consumed: int
    status: Status
    counts: dict[str, int]
    anomalies: dict[str, list[Any]]
    next_seq: int
    position: int
    directory: dict[int, tuple[str, dict[str, Any]]]


def parse(parser: Parser, pieces: Sequence[Frames], room: int = 1 << 12) -> Parsed:
    """Parse bytes that come in pieces, `room` events at a time, as the driver does; stop at END and
    MALFORMED."""
    given(bytes=list(pieces), room=room)
    rest = np.zeros(0, np.uint8)
    batches: list[Events] = []
    consumed, status = 0, Status.OK
    for piece in pieces:
        rest = np.concatenate([rest, piece])
        while True:
            out = canaries(room, EVENT)
            used, count, status = parser.parse_into(_locked(rest), out)
            assert 0 <= used <= len(rest), f"consumed {used} of {len(rest)} bytes"
            assert 0 <= count <= room, f"{count} events in room for {room}"
            assert untouched(out[count:]), f"wrote beyond the {count} events it counts"
            batches.append(out[:count].copy())
            rest = rest[used:]
            consumed += used
            if status is not Status.OUT_FULL:
                break
            assert count == room, f"OUT_FULL with {count} events in room for {room}"
        if status in (Status.END, Status.MALFORMED):
            break
    return _parsed(parser, batches, consumed, status)


def _locked(data: Frames) -> Frames:
    """A copy that nobody may write to, as a mapped file is."""
    copy = data.copy()
    copy.flags.writeable = False
    return copy


def _parsed(parser: Parser, batches: list[Events], consumed: int, status: Status) -> Parsed:
    return Parsed(
        events=np.concatenate([*batches, np.zeros(0, EVENT)]),
        consumed=consumed,
        status=status,
        counts={chr(letter): int(n) for letter, n in enumerate(parser.counts) if n},
        anomalies=counted(parser.anomalies),
        next_seq=int(parser.next_seq),
        position=int(parser.position),
        directory={i.locate: (i.symbol, dict(i.details)) for i in parser.session.directory},
    )


def agree(found: Parsed, expected: Parsed) -> None:
    """Two parsers said the same about the same bytes."""
    same(found.events, expected.events, "events")
    for name in ("consumed", "status", "counts", "anomalies", "next_seq", "position", "directory"):
        equal(name, getattr(found, name), getattr(expected, name))


def cut(data: Frames, places: Iterable[int]) -> list[Frames]:
    """`data` in pieces, cut at these places."""
    edges = sorted({0, len(data), *(place for place in places if 0 < place < len(data))})
    return [data[a:b] for a, b in pairwise(edges)] or [data]


# --- books --------------------------------------------------------------------------------------------------


@dataclass
class Applied:
    """All that a book says after some events."""

    tops: Tops
    effects: Effects
    digest: str
    anomalies: dict[str, list[Any]]
    locates: list[int]
    live_orders: int
    readings: dict[int, _Reading]


def apply(book: Book, batches: Sequence[Events]) -> Applied:
    """Apply batches one after the other; then read everything. Rows beyond a batch must stay as they were."""
    fed(book, events=list(batches))
    all_tops, all_effects = [np.zeros(0, TOP)], [np.zeros(0, EFFECT)]
    for events in batches:
        n = len(events)
        before = events.tobytes()
        tops, effects = canaries(n + 2, TOP), canaries(n + 2, EFFECT)
        assert book.apply(events, tops, effects) == n
        assert events.tobytes() == before, "apply wrote to the events"
        assert untouched(tops[n:]), "apply wrote tops beyond the batch"
        assert untouched(effects[n:]), "apply wrote effects beyond the batch"
        all_tops.append(tops[:n])
        all_effects.append(effects[:n])
    return read(
        book, _without_padding(np.concatenate(all_tops)), _without_padding(np.concatenate(all_effects))
    )


def _without_padding(records: NDArray[Any]) -> NDArray[Any]:
    """Fields only: what lies between them is not part of a record."""
    clean = np.zeros(len(records), records.dtype)
    for name in records.dtype.names or ():
        clean[name] = records[name]
    return clean


def read(book: Book, tops: Tops, effects: Effects) -> Applied:
    """Everything that a book can be asked."""
    locates = [int(locate) for locate in book.locates()]
    return Applied(
        tops=tops,
        effects=effects,
        digest=book.digest().hex(),
        anomalies=counted(book.anomalies),
        locates=locates,
        live_orders=book.live_orders(),
        readings={locate: _reading(book, locate) for locate in [0, *locates]},
    )


def _reading(book: Book, locate: int) -> _Reading:
    return (
        _without_padding(book.top(locate)).tobytes(),
        _without_padding(book.levels(locate, "B")).tobytes(),
        _without_padding(book.levels(locate, "S")).tobytes(),
        _without_padding(book.orders(locate)).tobytes(),
        int(book.state(locate)),
    )


def _told(found: _Reading, expected: _Reading) -> tuple[str, str]:
    """Two readings in words, each table around its first difference."""
    names, dtypes = ("top", "bids", "asks", "orders"), (TOP, LEVEL, LEVEL, ORDER)
    texts: tuple[list[str], list[str]] = [], []
    for name, dtype, *data in zip(names, dtypes, found[:4], expected[:4], strict=True):
        tables = both(np.frombuffer(data[0], dtype), np.frombuffer(data[1], dtype))
        for text, shown in zip(texts, tables, strict=True):
            text.append(f"{name}\n{shown}")
    for text, reading in zip(texts, (found, expected), strict=True):
        text.append(f"state {reading[4]}")
    return "\n".join(texts[0]), "\n".join(texts[1])


def alike(found: Applied, expected: Applied) -> None:
    """Two books did the same with the same events."""
    same(found.tops, expected.tops, "tops")
    same(found.effects, expected.effects, "effects")
    for name in ("anomalies", "locates", "live_orders"):
        equal(name, getattr(found, name), getattr(expected, name))
    for locate, reading in expected.readings.items():
        if found.readings[locate] != reading:
            raise DifferenceError(f"books of locate {locate}", *_told(found.readings[locate], reading))
    equal("digest", found.digest, expected.digest)


def batches(events: Events, sizes: Iterable[int]) -> list[Events]:
    """`events` in batches of these sizes, the last size repeated; every event is in one."""
    found, at, size = [], 0, 1
    rest = iter(sizes)
    while at < len(events):
        size = next(rest, size)
        found.append(events[at : at + size].copy())
        at += size
    return found
