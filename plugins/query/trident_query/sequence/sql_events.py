"""MATCH_RECOGNIZE over events: they become a table, with the columns that people ask for."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import Events
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_query.sequence.keys import OrderKeys
from trident_query.sequence.question import STEPS_MAX
from trident_query.sequence.sql import parse_sql, project
from trident_query.sequence.tables import table_rows
from trident_query.where.fields import FIELDS

#: Most events of a statement: SQL sorts them, so they are all in memory.
EVENTS_MAX: Final = 20_000_000

TableColumns = dict[str, Any]


def event_columns(events: Events, session: Session) -> TableColumns:
    """seq, ts, type, side, symbol, price (dollars, floating), qty, shares, ref, ref2, order_ref (the
    reference that the order began with, through replaces), mpid. Null where an event has none."""
    letters = np.array([chr(value) for value in range(256)])
    symbols = {int(n): session.directory.symbol(int(n)) or None for n in np.unique(events["locate"])}
    types = events["type"]
    eight = (events["flags"] & 2) != 0
    price = events["price"] / np.where(eight, 1e8, 10.0**session.price_decimals)
    mpid = [raw.tobytes().rstrip(b"\0 ").decode("utf-8", "replace") for raw in events["aux"][:, :4]]
    return {
        "seq": events["seq"].astype(np.int64), "ts": events["ts"].astype(np.int64), "type": letters[types],
        "side": [letters[side] if side else None for side in events["side"]],
        "symbol": [symbols[int(n)] for n in events["locate"]],
        "price": _of("price", price, types),
        **{name: _of(name, events["qty"].astype(np.int64), types) for name in ("qty", "shares")},
        "ref": events["ref"].astype(np.int64), "ref2": events["ref2"].astype(np.int64),
        "order_ref": _orders(events), "mpid": _of("mpid", np.array(mpid, object), types),
    }  # fmt: skip


def _of(name: str, values: NDArray[Any], types: NDArray[np.uint8]) -> list[Any]:
    """Null where the field is."""
    there = FIELDS[name].there(types).tolist()
    return [value if has else None for value, has in zip(values.tolist(), there, strict=True)]


def _orders(events: Events) -> list[int | None]:
    keys = OrderKeys()
    slots, _, _ = keys.of(events)  # nothing is given back, so a slot stands for one order
    return [int(keys.born[slot]) if slot >= 0 else None for slot in slots.tolist()]


def answer_sql(
    text: str, events: Events, session: Session, *, allow_backtracking: bool = False, steps: int = STEPS_MAX
) -> tuple[list[str] | None, list[list[Any]]]:
    """Names (None for `SELECT *`) and rows of a statement whose FROM is `events`.

    Raises PatternError with the byte offset, UsageError, SequenceError at a cap.
    """
    statement = parse_sql(text, steps_max=steps)
    if isinstance(statement.source, list):
        table: Any = statement.source
    elif statement.source == "events":
        if len(events) > EVENTS_MAX:
            raise UsageError(
                f"{len(events):,} events, more than {EVENTS_MAX:,}, the cap on SQL", hint="use --where"
            )
        table = event_columns(events, session)
    else:
        raise UsageError(f"no table {statement.source!r}", hint="FROM events")
    rows = project(statement, table_rows(statement.question, table, allow_backtracking=allow_backtracking))
    names = None if statement.outputs is None else [name for name, _ in statement.outputs]
    return names, rows
