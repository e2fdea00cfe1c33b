"""What a Replace makes of an order (OUCH 5.0, section 2.2), and what it cannot change here."""

from __future__ import annotations

from typing import Final

from trident_exchange.entering import RefusedError, check_quantity_price, seconds_to_live
from trident_exchange.open_orders import SALES, OpenOrder
from trident_exchange.ouch.codes import MARKET_PRICE, Reject, Tif
from trident_exchange.ouch.messages import EnterOrder, ReplaceOrder
from trident_exchange.ouch.options import Tag, option

#: Options of a Replace that may differ from the order's.
_FREE: Final = frozenset((Tag.USER_REF_IDX, Tag.SIDE, Tag.EXPIRE_TIME, Tag.SHARES_LOCATED, Tag.LOCATE_BROKER))


def heir(old: OpenOrder, request: ReplaceOrder, ts: int, disabled: bool) -> OpenOrder:
    """The order that takes the place of `old`, with nothing open yet. Raises RefusedError.

    Price, quantity, client's identifier, life and, among sales, the side can change; display, and the order's
    kind, stay what they were.
    """
    e = old.entered
    check_quantity_price(request.quantity, request.price)
    if disabled or (request.price == MARKET_PRICE) is not (e.price == MARKET_PRICE):
        raise RefusedError(Reject.REPLACE_NOT_ALLOWED)
    if request.display != e.display:
        raise RefusedError(Reject.INVALID_DISPLAY)
    for tag, value in request.options or ():
        if tag not in _FREE and value != option(e.options, tag):
            raise RefusedError(Reject.REPLACE_NOT_ALLOWED)
    made = OpenOrder(old.account, old.index, _entered(e, request), 0)
    made.expires = _expiry(old, request, ts)
    return made


def _entered(e: EnterOrder, request: ReplaceOrder) -> EnterOrder:
    side = option(request.options, Tag.SIDE)
    if side is not None and side != e.side and not {side, e.side} <= SALES:
        raise RefusedError(Reject.INVALID_SIDE)
    return e._replace(
        user_ref_num=request.user_ref_num, quantity=request.quantity, price=request.price,
        side=e.side if side is None else str(side), time_in_force=request.time_in_force,
        intermarket_sweep=request.intermarket_sweep, cl_ord_id=request.cl_ord_id,
    )  # fmt: skip


def _expiry(old: OpenOrder, request: ReplaceOrder, ts: int) -> int:
    if request.time_in_force == Tif.GTT:
        seconds = seconds_to_live(request.options)
        if seconds is None and not old.expires:
            raise RefusedError(Reject.OTHER)
        return old.expires if seconds is None else ts + seconds * 1_000_000_000
    if request.time_in_force not in (Tif.DAY, Tif.GTX, Tif.AFTER_HOURS):
        raise RefusedError(Reject.REPLACE_NOT_ALLOWED)
    return 0
