"""The tables by name, with what each is made of, and what their columns are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import numpy as np

from trident_core.dtypes import Effects, Events, Tops
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_core.tables import databento, notices
from trident_core.tables.candles import BAR
from trident_core.tables.common import Table
from trident_core.tables.levels import depth_dtype
from trident_core.tables.lives import ORDER_LIFE
from trident_core.tables.order_flow import MESSAGE, messages
from trident_core.tables.quotes import BBO, bbo
from trident_core.tables.voids import TRADE_OF_DAY


@dataclass(slots=True)
class Batch:
    """What one `Book.apply` was given and gave, with the typed rows of the same messages."""

    session: Session
    events: Events
    tops: Tops
    effects: Effects
    typed: Mapping[str, Table] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """One table. `types`: the messages that make rows, "" if a change of the book does; `typed`: those whose
    typed rows it needs; `make`: rows of one batch, None for tables that keep state between batches."""

    summary: str
    types: str = ""
    typed: str = ""
    make: Callable[[Batch], Table] | None = None
    whole_day: bool = False  # not cut by --from: without it other rows cannot be read


#: name -> table, in the order of docs/tables.md. `bars` stands for any kind of bar.
TABLES: Final[Mapping[str, TableSpec]] = {
    "bbo": TableSpec(
        "best bid and offer, at every change", make=lambda b: bbo(b.events, b.tops, b.session)
    ),
    "trades": TableSpec("prints, the voided ones marked", types="ECPQB"),
    "messages": TableSpec(
        "every message about an order, with what the book knew", types="AFECXDU",
        make=lambda b: messages(b.events, b.effects, b.session, b.tops),
    ),
    "depth": TableSpec("the best N levels of both sides, at every change"),
    "orders": TableSpec("one row for each order's life"),
    "bars": TableSpec("open, high, low, close, volume, VWAP", types="ECPQB"),
    "noii": TableSpec(
        "net order imbalance", "I", "I", lambda b: notices.noii(b.events, b.typed.get("I"), b.session)
    ),
    "halts": TableSpec(
        "trading actions, operational halts", "Hh", "", lambda b: notices.halts(b.events, b.session)
    ),
    "reg_sho": TableSpec("short sale restrictions", "Y", "", lambda b: notices.reg_sho(b.events, b.session)),
    "luld": TableSpec("auction collars", "J", "", lambda b: notices.luld(b.events, b.session)),
    "mwcb": TableSpec(
        "market-wide circuit breakers", "VW", "V",
        lambda b: notices.mwcb(b.events, b.typed.get("V"), b.session),
    ),
    "ipo": TableSpec(
        "quotation of new issues", "K", "K", lambda b: notices.ipo(b.events, b.typed.get("K"), b.session)
    ),
    "participants": TableSpec(
        "market participant positions", "L", "", lambda b: notices.participants(b.events, b.session)
    ),
    "rpii": TableSpec("retail interest", "N", "", lambda b: notices.rpii(b.events, b.session)),
    "direct_listing": TableSpec(
        "price discovery of direct listings", "O", "O",
        lambda b: notices.direct_listing(b.events, b.typed.get("O"), b.session),
    ),
    "directory": TableSpec(
        "the stock directory", "R", "R",
        lambda b: notices.directory(b.events, b.typed.get("R"), b.session), whole_day=True,
    ),
    "system": TableSpec(
        "system events", "S", "", lambda b: notices.system(b.events, b.session), whole_day=True
    ),
}  # fmt: skip

#: The same for Databento's names. `mbp-N` and `ohlcv-…` stand for any N (2 to 50) and 1s, 1m, 1h.
DATABENTO_TABLES: Final[Mapping[str, TableSpec]] = {
    "mbo": TableSpec(
        "order by order", types="AFECXDUPQ",
        make=lambda b: databento.mbo(b.events, b.effects, b.tops, b.session),
    ),
    "mbp-1": TableSpec(
        "best bid and offer, with the event",
        make=lambda b: databento.mbp_1(b.events, b.effects, b.tops, b.session),
    ),
    "mbp-10": TableSpec("the best 10 levels, with the event"),
    "trades": TableSpec(
        "prints", types="ECPQ", make=lambda b: databento.trades(b.events, b.effects, b.tops, b.session)
    ),
    "ohlcv-1s": TableSpec("bars of a second", types="ECPQB"),
    "ohlcv-1m": TableSpec("bars of a minute", types="ECPQB"),
    "ohlcv-1h": TableSpec("bars of an hour", types="ECPQB"),
}  # fmt: skip


class Naming(StrEnum):
    """Whose names the tables and columns have."""

    TRIDENT = "trident"
    DATABENTO = "databento"


_DTYPES: Final = {
    "bbo": BBO, "messages": MESSAGE, "trades": TRADE_OF_DAY, "orders": ORDER_LIFE, "noii": notices.NOII,
    "halts": notices.HALT, "reg_sho": notices.REG_SHO, "luld": notices.LULD, "mwcb": notices.MWCB,
    "ipo": notices.IPO, "participants": notices.PARTICIPANT, "rpii": notices.RPII,
    "direct_listing": notices.DIRECT_LISTING, "directory": notices.DIRECTORY, "system": notices.SYSTEM,
    "mbo": databento.MBO,
}  # fmt: skip


def dtype_of(name: str, naming: Naming, depth: int) -> np.dtype[np.generic]:
    """The row of a table by its name, a kind of bar (`bars_1m`) too."""
    if name == "depth":
        return depth_dtype(depth)
    if name.startswith("bars_"):
        return BAR
    if name.startswith("ohlcv-"):
        return databento.OHLCV
    if name.startswith("mbp-"):
        return databento.mbp_dtype(int(name.removeprefix("mbp-")))
    return databento.DB_TRADE if name == "trades" and naming is Naming.DATABENTO else _DTYPES[name]


def select(names: tuple[str, ...], naming: Naming) -> dict[str, TableSpec]:
    """The tables of these names, in their order, each once. Raises UsageError for others, naming them all."""
    known = TABLES if naming is Naming.TRIDENT else DATABENTO_TABLES
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise UsageError(
            f"no table {', '.join(map(repr, unknown)) or 'named'} ({naming.value} names)",
            hint=f"tables: {', '.join(known)}",
        )
    return {name: known[name] for name in names}


class Column(StrEnum):
    """What a column holds, told by its name: the same name means the same everywhere."""

    TIME = "time"  # UTC nanoseconds
    PRICE = "price"  # at the table's scale
    PRICE8 = "price8"  # 8 decimals
    SYMBOL = "symbol"  # locate
    TEXT = "text"
    PLAIN = "plain"


_PRICES: Final = frozenset({"price", "open", "high", "low", "close", "vwap", "notional"})


def column_of(name: str, dtype: np.dtype[np.generic]) -> Column:
    """What the column `name` is."""
    if name == "ts_event" or name.endswith("_ts"):
        return Column.TIME
    if name in ("locate", "instrument_id"):
        return Column.SYMBOL
    if name.startswith("level_"):
        return Column.PRICE8
    if dtype.kind == "S":
        return Column.TEXT
    if name in _PRICES or name.endswith("_px") or "_px_" in name:
        return Column.PRICE
    return Column.PLAIN


def count_of(name: str) -> str | None:
    """The column whose 0 says that the price `name` is absent: bid_px -> bid_ct, ask_px_03 -> ask_ct_03."""
    return name.replace("_px", "_ct") if name.startswith(("bid_px", "ask_px")) else None
