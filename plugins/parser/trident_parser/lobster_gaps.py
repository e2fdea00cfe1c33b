"""What a LOBSTER message file leaves out, worked out from the rest of it.

A file records what happened in the best levels, in the hours it covers. Orders that are older, or that
joined outside the recorded depth, are deleted or executed without having been added; and an order that is
outside the depth for a while may lose shares unseen. These helpers make the events that a book lacks, so that
every reference resolves and every message changes the book by what the file says. They need a whole day in
memory: 64 bytes for each event and some 200 for each order. docs/lobster.md tells what no helper can know.
"""

from __future__ import annotations

import os
from typing import Final

import numpy as np

from trident_core.contracts import Kind
from trident_core.decode import decode
from trident_core.dtypes import EVENT, Events
from trident_core.feeds import open_feed
from trident_core.plugins import registry
from trident_core.session import Session
from trident_core.stats import Anomalies

_ADD, _CANCEL, _DELETE = ord("A"), ord("X"), ord("D")
_ORDER_LETTERS: Final = np.frombuffer(b"AXDE", np.uint8)
_U64_MAX: Final = (1 << 64) - 1


def read_day(path: str | os.PathLike[str]) -> tuple[Session, Events, Anomalies]:
    """A whole message file (csv, compressed or not, or LOBSTER's zip) as (session, EVENT[n], what was wrong).

    Raises InputError if the file cannot be opened.
    """
    feed, source, session = open_feed(os.fspath(path), feed="lobster")
    try:
        parser = registry().select(Kind.PARSER, "lobster").load()(session)
        batches = [batch.copy() for batch in decode(feed, parser)]
    finally:
        source.close()
    anomalies = Anomalies()
    for owner in (source, feed, parser):
        anomalies.merge(owner.anomalies)
    return session, np.concatenate(batches) if batches else np.zeros(0, EVENT), anomalies


def opening_orders(events: Events) -> Events:
    """EVENT[k]: an add for each order that `events` (EVENT[n], a whole day) touches without having added it.

    Side and price are those of the order's first message; the quantity is all that messages take from it
    later, up to its deletion, so that it leaves the book with the last of them. `seq` and `ts` are 0: no
    message said so, and when it joined is not known. By ascending reference, which is the order in which the
    venue took them in, so that queues are right among them. Apply them before the first event.
    """
    firsts: dict[int, tuple[int, int, int]] = {}  # reference -> locate, side, price
    taken: dict[int, int] = {}
    settled: set[int] = set()  # added in the file, or deleted
    for locate, letter, side, ref, price, qty in _order_rows(events):
        if ref in settled:
            continue
        if letter == _ADD:
            settled.add(ref)
            continue
        firsts.setdefault(ref, (locate, side, price))
        taken[ref] = taken.get(ref, 0) + qty
        if letter == _DELETE:
            settled.add(ref)
    refs = sorted(ref for ref, qty in taken.items() if qty)
    adds = np.zeros(len(refs), EVENT)
    adds["type"] = _ADD
    adds["ref"] = refs
    adds["qty"] = [min(taken[ref], _U64_MAX) for ref in refs]
    for n, ref in enumerate(refs):
        adds["locate"][n], adds["side"][n], adds["price"][n] = firsts[ref]
    return adds


def unseen_cancels(events: Events) -> Events:
    """EVENT[k]: the cancels that `events` (EVENT[n], a whole day) prove but do not have.

    A deletion carries the shares that it removes. Where these are fewer than what is left by the messages
    before it, the difference was cancelled while the order was outside the recorded depth. Each cancel has
    the `seq` and `ts` of that deletion: apply it right before. (When it really happened is not known.)
    """
    left: dict[int, int] = {}  # of orders that the file adds; opening orders have what is taken from them
    found: list[tuple[int, int]] = []  # index of the deletion, shares
    for n, letter, ref, qty in _numbered_rows(events):
        if letter == _ADD:
            left[ref] = qty
        elif letter == _DELETE:
            lost = left.pop(ref, 0) - qty
            if lost > 0:
                found.append((n, lost))
        elif ref in left:
            left[ref] -= qty
    cancels = events[[n for n, _ in found]]
    cancels["type"] = _CANCEL
    cancels["qty"] = [lost for _, lost in found]
    return cancels


def complete_day(events: Events) -> Events:
    """EVENT[n + k]: opening orders, then `events` with each unseen cancel before its deletion.

    For a book. Not for a store: the `seq` of what was added does not grow.
    """
    cancels = unseen_cancels(events)
    places = np.searchsorted(events["seq"], cancels["seq"])
    return np.concatenate([opening_orders(events), np.insert(events, places, cancels)])


def _order_rows(events: Events) -> list[tuple[int, int, int, int, int, int]]:
    """locate, letter, side, reference, price and quantity of the events that are about an order."""
    chosen = events[np.isin(events["type"], _ORDER_LETTERS)]
    names = ("locate", "type", "side", "ref", "price", "qty")
    return list(zip(*(chosen[name].tolist() for name in names), strict=True))


def _numbered_rows(events: Events) -> list[tuple[int, int, int, int]]:
    """index in `events`, letter, reference and quantity of the same."""
    where = np.flatnonzero(np.isin(events["type"], _ORDER_LETTERS))
    chosen = events[where]
    return list(zip(where.tolist(), *(chosen[name].tolist() for name in ("type", "ref", "qty")), strict=True))
