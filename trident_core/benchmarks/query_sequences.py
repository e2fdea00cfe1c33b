"""Benchmarks of sequence engines: lives of orders that were added, executed and deleted (`A E+ D`).

Columns of type letters and partition numbers are the measure of the automaton alone; events, with the look-up
of each order, of all of it. DuckDB answers by string_agg and a regular expression, as it has no row patterns.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.benchmarks.setting import DAYS, Setting
from trident_core.contracts import Kind
from trident_core.dtypes import EVENT, Events
from trident_core.measure import Comparison, compare
from trident_core.session import Session

ORDERS: Final = 2_500_000
PATTERN: Final = "A E+ D"
#: Events that are fed at once, and those that DuckDB and whole events are measured with.
BATCH: Final = 1 << 18
PEER_EVENTS: Final = 1_000_000

_SQL: Final = """
    SELECT sum(len(regexp_extract_all(life, 'AE+D')))
    FROM (SELECT string_agg(letter, '' ORDER BY place) AS life FROM events GROUP BY partition_)"""


def lives(orders: int) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Types and order numbers of so many orders, three and a half events each, as they mix in a day."""
    rng = np.random.default_rng(1)
    births, fills = np.sort(rng.random(orders)), rng.poisson(1.5, orders)
    each = np.arange(orders)
    keys = np.concatenate([each, np.repeat(each, fills), each])
    times = np.concatenate(
        [births, np.repeat(births, fills) + 0.01 * rng.random(fills.sum()), births + 0.0101]
    )
    types = np.repeat(np.frombuffer(b"AED", np.uint8), [orders, fills.sum(), orders])
    order = np.argsort(times, kind="stable")
    return types[order], keys[order].astype(np.int32)


def bench_sequences(setting: Setting) -> list[Comparison]:
    """The selected engine on columns (counts, spans) and on events, and DuckDB on the same columns."""
    orders = ORDERS if setting.day.name in DAYS else max(1_000, 2 * setting.day.messages // 7)
    types, keys = lives(orders)
    name, factory = setting.engine(Kind.SEQUENCE)
    engine = factory()
    title, about = f"sequences ({PATTERN})", f"{len(types):,} events of {orders:,} orders"
    made = []
    if hasattr(engine.search(PATTERN, Session()), "feed_types"):
        runs: dict[str, Callable[[], object]] = {
            f"{name}, counts": lambda: _columns(engine, types, keys, orders, count_only=True),
            f"{name}, spans": lambda: _columns(engine, types, keys, orders, count_only=False),
        }
        made.append(
            compare(f"{title}, columns", runs, about, unit="events", units=len(types), rounds=setting.rounds)
        )
    few = slice(0, min(len(types), PEER_EVENTS))
    types, keys = types[few], keys[few]
    events, notes = _events(types, keys), []
    whole: dict[str, Callable[[], object]] = {f"{name}, spans of events": lambda: _whole(engine, events)}
    if find_spec("duckdb"):
        whole["duckdb, string_agg and a regular expression"] = _duckdb(types, keys)
    else:
        notes.append("duckdb: left out, it is not installed")
    about = f"the first {len(types):,} of these events"
    made.append(
        compare(
            f"{title}, events",
            whole,
            about,
            unit="events",
            units=len(types),
            rounds=setting.rounds,
            notes=notes,
        )
    )
    return made


def _columns(engine: Any, types: NDArray[Any], keys: NDArray[Any], orders: int, *, count_only: bool) -> int:
    search = engine.search(PATTERN, Session(), count_only=count_only)
    for first in range(0, len(types), BATCH):
        search.feed_types(types[first : first + BATCH], keys[first : first + BATCH], first, key_count=orders)
    return int(search.walk.total)


def _events(types: NDArray[Any], keys: NDArray[Any]) -> Events:
    made = np.zeros(len(types), EVENT)
    made["seq"], made["ts"] = np.arange(len(types)) + 1, np.arange(len(types))
    made["type"], made["ref"] = types, keys + 1
    made["qty"] = np.where(types == ord("A"), 1 << 20, 1)
    return made


def _whole(engine: Any, events: Events) -> int:
    search = engine.search(PATTERN, Session())
    found = sum(len(search.feed(events[at : at + (1 << 16)])) for at in range(0, len(events), 1 << 16))
    return found + len(search.finish())


def _duckdb(types: NDArray[Any], keys: NDArray[Any]) -> Callable[[], object]:
    import duckdb
    import pyarrow as pa

    letters = np.array([chr(value) for value in range(256)])
    events = pa.table({"letter": letters[types], "partition_": keys, "place": np.arange(len(types))})
    connection = duckdb.connect()
    connection.execute("SET threads = 1")
    connection.register("arrow_events", events)
    connection.execute("CREATE TABLE events AS SELECT * FROM arrow_events")
    return lambda: connection.execute(_SQL).fetchone()
