"""Events as `trident query` shows them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trident_core.dtypes import EventFlag
from trident_core.event_types import PRICED
from trident_core.session import format_price, format_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trident_core.dtypes import Events
    from trident_core.search import Search
    from trident_core.search_set import SetSearch
    from trident_core.session import Session


def event_rows(
    events: Events, session: Session, names: Sequence[list[str]] | None = None
) -> list[dict[str, Any]]:
    """Events as dictionaries for people: symbol, clock time and decimal prices; `names`: the patterns that
    each one meets."""
    rows: list[dict[str, Any]] = []
    for e in events:
        aux = e["aux"].tobytes().rstrip(b"\x00 ")
        price = format_price(e["price"], 8 if e["flags"] & EventFlag.PRICE_8DP else session.price_decimals)
        rows.append(
            {
                "seq": int(e["seq"]),
                "time": format_time(e["ts"]),
                "type": chr(e["type"]),
                "symbol": session.directory.symbol(int(e["locate"])),
                "side": chr(e["side"]) if e["side"] else "",
                "price": price if e["type"] in PRICED or e["price"] else None,
                "qty": int(e["qty"]),
                "ref": int(e["ref"]),
                "ref2": int(e["ref2"]),
                "aux": aux.decode("ascii", "backslashreplace"),
            }
        )
    for row, met in zip(rows, names or (), strict=False):
        row["patterns"] = met
    return rows


def found_rows(search: Search | SetSearch) -> Iterator[list[dict[str, Any]]]:
    """What a search finds, batch by batch; of a set of patterns with the names of those that are met."""
    for events, masks in search.labelled():
        yield event_rows(events, search.snapshot.session, met(search, masks))


def met(search: Search | SetSearch, masks: NDArray[np.uint64] | None) -> list[list[str]] | None:
    """The names of the patterns that each event meets; None where there is no set of patterns."""
    if masks is None or not hasattr(search, "names_of"):
        return None
    known = {mask: search.names_of(mask) for mask in set(masks.tolist())}
    return [known[mask] for mask in masks.tolist()]
