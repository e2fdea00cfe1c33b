"""What becomes of orders that live: replace, reduce, cancel, one or many (MATCH-30 to MATCH-35)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from trident_book.matching.records import (
    AON,
    CANCEL_ON_DISCONNECT,
    GTC,
    IN_FLIGHT,
    LIMIT,
    POST_ONLY,
    QUOTATION,
    STOP_LIMIT,
    TRADING,
    Command,
    Row,
)
from trident_book.matching.reference_book import Order, Symbol, stands_against, waits_for_cross
from trident_book.matching.reference_checks import would_trade, wrong_with_mass, wrong_with_prices
from trident_book.matching.reference_entry import enter, settle
from trident_book.matching.reference_market import Market
from trident_core.contracts import Op, Reason, ReportFlag, ReportKind

_DISPLAYED, _LEFT = int(ReportFlag.DISPLAYED), int(ReportFlag.LEFT)
_IN_PLACE, _RESTS = int(ReportFlag.IN_PLACE), int(ReportFlag.RESTS)


def reject(market: Market, c: Command, reason: Reason, order: Order | None = None) -> Row:
    """REJECTED: the command as it is, at the symbol of the order that it names, if that lives."""
    return Row(
        ReportKind.REJECTED, order.locate if order else c.locate, id=c.id, id2=c.id2, owner=c.owner,
        reason=reason, code=c.op,
    )  # fmt: skip


class _Terms(NamedTuple):
    """What an order is to be."""

    id: int
    price: int
    leaves: int
    stop: int
    trail: int


def replace(market: Market, c: Command) -> Iterator[Row]:
    """MATCH-30 to MATCH-33."""
    order = market.find(c)
    if order is None:
        yield reject(market, c, Reason.UNKNOWN_ID)
        return
    symbol, total = market.of(order), c.flags & IN_FLIGHT
    if total and c.qty and c.qty <= order.filled:
        yield market.cancel(order, Reason.IN_FLIGHT)
        yield from settle(market, symbol)
        return
    terms = _Terms(
        c.id2 or order.id,
        c.price or order.price if order.kind in (LIMIT, STOP_LIMIT) else 0,
        (c.qty - order.filled if total else c.qty) if c.qty else order.leaves,
        c.stop or order.stop if order.is_stop else order.stop,
        c.trail or order.trail if order.is_stop else order.trail,
    )
    reason = _wrong_with_replace(market, symbol, order, c, terms)
    if reason:
        yield reject(market, c, reason, order)
        return
    if _keeps_place(order, terms):
        yield _change_in_place(market, order, terms)
    else:
        yield from _come_in_again(market, symbol, order, terms)
    yield from settle(market, symbol)


def _wrong_with_replace(market: Market, symbol: Symbol, order: Order, c: Command, terms: _Terms) -> Reason:
    if c.qty > market.rules.qty_max:
        return Reason.BAD_QTY
    price = c.price if order.kind in (LIMIT, STOP_LIMIT) else 0
    stop, trail = (c.stop, c.trail) if order.is_stop else (0, 0)
    reason = wrong_with_prices(market, (price, stop), trail)
    if reason:
        return reason
    if order.kind == LIMIT and not symbol.in_band(order.side, terms.price):
        return Reason.BAND
    moves = not _keeps_place(order, terms)
    if moves and symbol.state not in (TRADING, QUOTATION):
        return Reason.STATE
    if terms.id != order.id and terms.id in market.orders:
        return Reason.DUPLICATE_ID
    if moves and order.kind == LIMIT and order.flags & POST_ONLY:
        return Reason.POST_ONLY if would_trade(symbol, order.side, terms.price) else Reason.NONE
    return Reason.NONE


def _keeps_place(order: Order, terms: _Terms) -> bool:
    """MATCH-32."""
    same = (terms.price, terms.stop, terms.trail) == (order.price, order.stop, order.trail)
    return same and terms.leaves <= order.leaves


def _rename(market: Market, order: Order, new: int) -> None:
    del market.orders[order.id]
    market.orders[new] = order
    order.id = new


def _change_in_place(market: Market, order: Order, terms: _Terms) -> Row:
    old, before = order.id, order.displayed()
    order.leaves = terms.leaves
    order.shown = min(order.shown, order.leaves)
    _rename(market, order, terms.id)
    shown = order.displayed()
    return Row(
        ReportKind.REPLACED, order.locate, id=old, id2=order.id, ref=order.ref, ref2=order.ref,
        price=order.price, qty=shown, leaves=order.leaves, leaves2=before - shown, owner=order.owner,
        mpid=order.mpid, side=order.side, flags=_IN_PLACE | (_DISPLAYED if before else 0),
    )  # fmt: skip


def _come_in_again(market: Market, symbol: Symbol, order: Order, terms: _Terms) -> Iterator[Row]:
    """MATCH-33."""
    old, old_ref, seen = order.id, order.ref, order.displayed() > 0
    symbol.leave(order)
    _rename(market, order, terms.id)
    order.price, order.leaves, order.stop, order.trail = terms[1:]
    market.name_anew(order)
    rests = _rests_at_once(symbol, order)
    if rests:
        symbol.join(order)
    yield Row(
        ReportKind.REPLACED, order.locate, id=old, id2=order.id, ref=order.ref, ref2=old_ref,
        price=order.price, qty=order.displayed(), leaves=order.leaves, owner=order.owner, mpid=order.mpid,
        side=order.side, flags=(_DISPLAYED | _LEFT if seen else 0) | (_RESTS if rests else 0),
    )  # fmt: skip
    if not rests:
        yield from enter(market, order)


def _rests_at_once(symbol: Symbol, order: Order) -> bool:
    if order.kind != LIMIT or waits_for_cross(order) or order.flags & AON:
        return False
    return symbol.state == QUOTATION or not stands_against(symbol, order.side, order.price)


def reduce(market: Market, c: Command) -> Iterator[Row]:
    """MATCH-34, for CANCEL too."""
    order = market.find(c)
    if order is None:
        yield reject(market, c, Reason.UNKNOWN_ID)
        return
    if c.op == Op.REDUCE and c.qty == 0:
        yield reject(market, c, Reason.BAD_QTY, order)
        return
    symbol, qty = market.of(order), order.leaves if c.op == Op.CANCEL else min(c.qty, order.leaves)
    yield market.cut(order, qty, Reason.USER)
    yield from settle(market, symbol)


_CHOSEN: dict[int, tuple[Reason, Callable[[Order, Command], bool]]] = {
    Op.MASS_CANCEL: (
        Reason.MASS,
        lambda order, c: (
            order.owner == c.owner and c.locate in (0, order.locate) and c.side in (0, order.side)
        ),
    ),
    Op.DISCONNECT: (
        Reason.DISCONNECT,
        lambda order, c: order.owner == c.owner and bool(order.flags & CANCEL_ON_DISCONNECT),
    ),
    Op.END_OF_DAY: (
        Reason.EXPIRED,
        lambda order, c: order.tif != GTC and c.locate in (0, order.locate),
    ),
}  # fmt: skip


def cancel_many(market: Market, c: Command) -> Iterator[Row]:
    """MATCH-35."""
    wrong = wrong_with_mass(c)
    if wrong:
        yield reject(market, c, wrong)
        return
    locate = 0 if c.op == Op.DISCONNECT else c.locate
    if locate:
        market.symbol(locate)
    reason, chosen = _CHOSEN[c.op]
    orders = sorted((o for o in market.orders.values() if chosen(o, c)), key=lambda order: order.ref)
    for order in orders:
        yield market.cancel(order, reason)
    for touched in sorted({order.locate for order in orders}):
        yield from settle(market, market.symbols[touched])
    yield done(c, locate, len(orders))


def done(c: Command, locate: int, cancelled: int) -> Row:
    return Row(ReportKind.DONE, locate, id=c.id, owner=c.owner, code=c.op, qty=cancelled)
