"""Snapshots of the books for GLIMPSE: what the feed has made of them, message by message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trident_core.dtypes import EVENT, Events, Orders
from trident_exchange import publishing
from trident_exchange.glimpse import encode_snapshot_end
from trident_exchange.stream import Stream

if TYPE_CHECKING:
    from trident_exchange.exchange import Exchange


def take_snapshot(exchange: Exchange) -> Stream:
    """The state that the feed has led to, up to the message before the number in the last message (G).

    To be called between batches, when nothing is under way that the feed has not got."""
    core, stream = exchange.core, Stream()
    ts = core.now
    stream.append_framed(exchange.encode(publishing.system_event(ts, "O")))
    stream.append_framed(exchange.encode(publishing.directory(ts, core.config.symbols)))
    stream.append_framed(exchange.encode(_states(exchange, ts)))
    for locate in core.matcher.locates():
        orders = core.matcher.orders(int(locate))
        if len(orders):
            stream.append_framed(exchange.encode(_adds(orders)))
    stream.append([encode_snapshot_end(exchange.feed.next)])
    return stream


def _states(exchange: Exchange, ts: int) -> Events:
    n = len(exchange.core.config.symbols)
    events = np.zeros(n, EVENT)
    events["ts"], events["type"] = ts, ord("H")
    events["locate"] = np.arange(1, n + 1)
    events["aux"][:, 1:5] = ord(" ")
    events["aux"][:, 0] = [int(exchange.core.matcher.state(locate)) for locate in range(1, n + 1)]
    return events


def _adds(orders: Orders) -> Events:
    events = np.zeros(len(orders), EVENT)
    for name in ("ref", "price", "qty", "ts", "locate", "side"):
        events[name] = orders[name]
    named = (orders["mpid"] != 0).any(axis=1)
    events["type"] = np.where(named, ord("F"), ord("A"))
    events["aux"][:, :4] = orders["mpid"]
    return events
