"""Matching engines that people install from PyPI, driven as their own pages show; fewer commands, same
stream."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from trident_core.contracts.matching import Op, TimeInForce
from trident_core.orders import Commands

_BEGAN: Final = datetime(2026, 1, 2)
#: As long as any run.
_EXPIRES: Final = timedelta(days=1)

#: (seconds that the second commands took, what is to be said about it)
Peer = Callable[[Commands, Commands], tuple[float, str]]


def fastlob_seconds(before: Commands, commands: Commands) -> tuple[float, str]:
    """Seconds that `fastlob` takes for `commands`, after `before`. It makes its own identifiers. Its orders
    are good till cancelled, as it has no IOC: what takes is followed by a cancel of its rest. It may lose an
    order's price level while the order rests (0.0.24 does), and raises KeyError when that is cancelled.

    Raises ImportError where it is not installed.
    """
    from fastlob import Orderbook, OrderParams, OrderSide, OrderType

    names: dict[int, Any] = {}
    sides = {ord("B"): OrderSide.BID, ord("S"): OrderSide.ASK}
    lost = 0

    def cancel(book: Any, name: Any) -> None:
        nonlocal lost
        try:
            book.cancel(name)
        except KeyError:
            lost += 1

    def run(book: Any, rows: list[dict[str, int]]) -> None:
        for row in rows:
            if row["op"] == Op.CANCEL:
                if row["id"] in names:
                    cancel(book, names.pop(row["id"]))
                continue
            order = OrderParams(
                side=sides[row["side"]], price=row["price"] / 100, quantity=row["qty"], otype=OrderType.GTC
            )
            name = book(order).orderid()
            if row["tif"] != TimeInForce.IOC:
                names[row["id"]] = name
            elif book.get_status(name)[1] > 0:
                cancel(book, name)

    logging.getLogger("[bench]").setLevel(logging.CRITICAL)  # it tells of each cancel that comes too late
    book = Orderbook(name="bench")
    book.start()
    try:
        run(book, rows_of(before))
        rows = rows_of(commands)
        began = time.perf_counter()
        run(book, rows)
        seconds = time.perf_counter() - began
        return seconds, f"fastlob could not cancel {lost} orders: it had lost their levels" if lost else ""
    finally:
        book.stop()


def order_matching_seconds(before: Commands, commands: Commands) -> tuple[float, str]:
    """Seconds that `order-matching` takes for `commands`, after `before`: `place`, then `match`, one order
    at a time, as all orders of a batch would be placed before the first is matched. What takes is cancelled
    after.

    Raises ImportError where it is not installed.
    """
    from loguru import logger
    from order_matching.enums import Side
    from order_matching.matching_engine import MatchingEngine
    from order_matching.order import LimitOrder
    from order_matching.orders import Orders

    logger.disable("order_matching")
    engine = MatchingEngine(seed=1)
    sides = {ord("B"): Side.BUY, ord("S"): Side.SELL}

    def cancel(name: str) -> None:
        if engine.unprocessed_orders.find_order_by_id(name) is not None:
            engine.cancel_order(name)

    def run(rows: list[dict[str, int]]) -> None:
        for row in rows:
            name = str(row["id"])
            if row["op"] == Op.CANCEL:
                cancel(name)
                continue
            order = LimitOrder(
                side=sides[row["side"]], price=row["price"] / 100, size=float(row["qty"]), timestamp=_BEGAN,
                order_id=name, trader_id=str(row["owner"]), expiration=_BEGAN + _EXPIRES,
            )  # fmt: skip
            engine.place(orders=Orders([order]))
            engine.match(timestamp=_BEGAN)
            if row["tif"] == TimeInForce.IOC:
                cancel(name)

    run(rows_of(before))
    rows = rows_of(commands)
    began = time.perf_counter()
    run(rows)
    return time.perf_counter() - began, ""


#: name -> how long it takes.
PEERS: Final[dict[str, Peer]] = {"fastlob": fastlob_seconds, "order-matching": order_matching_seconds}


def rows_of(commands: Commands) -> list[dict[str, int]]:
    """The columns that peers know, as Python numbers: not part of what is measured."""
    names = ("op", "id", "owner", "side", "tif", "price", "qty")
    return [
        dict(zip(names, row, strict=True)) for row in zip(*(commands[n].tolist() for n in names), strict=True)
    ]
