"""OUCH's orders as commands of the matching engine: what each field means here, and why some are refused."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from trident_core.contracts.matching import Op, OrderFlag, OrderKind, Reason, SelfTrade, TimeInForce
from trident_core.orders import COMMAND
from trident_exchange.ouch.codes import (
    MARKET_PRICE,
    PRICE_MAX,
    QUANTITY_LIMIT,
    Aiq,
    Cancel,
    Display,
    Reject,
    Tif,
)
from trident_exchange.ouch.messages import EnterOrder
from trident_exchange.ouch.options import Options, Tag, Value

_PACKER: Final = struct.Struct("<QQQqQQQqqqqII4sBBBBHBB4x")
if _PACKER.size != COMMAND.itemsize:
    raise ImportError(f"a COMMAND of {COMMAND.itemsize} bytes")

_SIDES: Final = {"B": ord("B"), "S": ord("S"), "T": ord("S"), "E": ord("S")}
_CAPACITIES: Final = frozenset("APRO")
#: Crosses that an order can be for; "H" orders wait in the book for the cross that ends a halt.
_CROSSES: Final[Mapping[str, int]] = {
    "N": TimeInForce.DAY, "H": TimeInForce.DAY, "O": TimeInForce.ON_OPEN, "C": TimeInForce.ON_CLOSE,
}  # fmt: skip
_AIQ: Final[Mapping[str, int]] = {
    Aiq.CANCEL_OLDEST: SelfTrade.RESTING, Aiq.CANCEL_NEWEST: SelfTrade.INCOMING,
    Aiq.DECREMENT_BOTH: SelfTrade.DECREMENT, Aiq.DECREMENT_BOTH_NO_DETAILS: SelfTrade.DECREMENT,
}  # fmt: skip
#: Options that are taken and given back, and change nothing.
_NOTED: Final = frozenset(
    (Tag.FIRM, Tag.CUSTOMER_TYPE, Tag.TRADE_NOW, Tag.HANDLE_INST, Tag.GROUP_ID, Tag.SHARES_LOCATED,
     Tag.LOCATE_BROKER, Tag.USER_REF_IDX, Tag.AIQ_GROUP_ID, Tag.EXPIRE_TIME, Tag.SIDE)
)  # fmt: skip
#: Options that mean an order type which this exchange does not have.
_REFUSED: Final[Mapping[int, Reject]] = {
    Tag.PEG_OFFSET: Reject.PEGGING_NOT_ALLOWED, Tag.DISCRETION_PRICE: Reject.PEGGING_NOT_ALLOWED,
    Tag.DISCRETION_PRICE_TYPE: Reject.PEGGING_NOT_ALLOWED,
    Tag.DISCRETION_PEG_OFFSET: Reject.PEGGING_NOT_ALLOWED,
    Tag.RANDOM_RESERVES: Reject.INVALID_MAX_FLOOR, Tag.ROUTE: Reject.ROUTING_NOT_ALLOWED,
}  # fmt: skip


class RefusedError(Exception):
    """An order that the exchange refuses before the matching engine sees it."""

    def __init__(self, reason: Reject) -> None:
        super().__init__(reason.name)
        self.reason = reason


def command(
    op: Op, ts: int, *, id_: int = 0, id2: int = 0, price: int = 0, qty: int = 0, peak: int = 0,
    min_qty: int = 0, stop: int = 0, locate: int = 0, owner: int = 0, mpid: bytes = b"", side: int = 0,
    kind: int = 0, tif: int = 0, flags: int = 0, stp: int = 0, code: int = 0,
) -> bytes:  # fmt: skip
    """One COMMAND."""
    return _PACKER.pack(
        ts, id_, id2, price, qty, peak, min_qty, stop, 0, 0, 0, locate, owner, mpid, op, side, kind, tif,
        flags, stp, code,
    )  # fmt: skip


def check_quantity_price(quantity: int, price: int) -> None:
    """Raises RefusedError."""
    if not 1 <= quantity < QUANTITY_LIMIT:
        raise RefusedError(Reject.INVALID_QUANTITY)
    if not 1 <= price <= PRICE_MAX and price != MARKET_PRICE:
        raise RefusedError(Reject.INVALID_PRICE)


def new_order(ts: int, id_: int, owner: int, locate: int, order: EnterOrder, firm: str, gone: bool) -> bytes:
    """The NEW of an order. `gone`: it goes when its owner's connection does. Raises RefusedError."""
    side = _SIDES.get(order.side)
    if side is None:
        raise RefusedError(Reject.INVALID_SIDE)
    if not locate:
        raise RefusedError(Reject.INVALID_SYMBOL)
    check_quantity_price(order.quantity, order.price)
    flags = OrderFlag.CANCEL_ON_DISCONNECT if gone else 0
    mpid = b""
    if order.display == Display.HIDDEN:
        flags |= OrderFlag.HIDDEN
    elif order.display == Display.ATTRIBUTABLE:
        mpid = firm.encode("ascii").ljust(4)
    elif order.display != Display.VISIBLE:
        raise RefusedError(Reject.INVALID_DISPLAY)
    if order.capacity not in _CAPACITIES:
        raise RefusedError(Reject.OTHER)
    market = order.price == MARKET_PRICE
    peak = min_qty = stp = 0
    if order.options:
        extra, peak, min_qty, stp = _options(order.options, firm)
        flags |= extra
    return _PACKER.pack(
        ts, id_, 0, 0 if market else order.price, order.quantity, peak, min_qty, 0, 0, 0, 0, locate, owner,
        mpid, Op.NEW, side, OrderKind.MARKET if market else OrderKind.LIMIT, _tif(order), flags, stp, 0,
    )  # fmt: skip


def _tif(order: EnterOrder) -> int:
    tif = order.time_in_force
    cross = _CROSSES.get(order.cross_type)
    if cross is None:
        raise RefusedError(Reject.INVALID_CROSS_ORDER)
    if tif == Tif.IOC:
        if order.cross_type != "N":
            raise RefusedError(Reject.INVALID_CROSS_ORDER)
        return TimeInForce.IOC
    if tif not in (Tif.DAY, Tif.GTX, Tif.GTT, Tif.AFTER_HOURS):
        raise RefusedError(Reject.OTHER)
    if tif == Tif.GTT and seconds_to_live(order.options) is None:
        raise RefusedError(Reject.OTHER)
    return cross


def seconds_to_live(options: Options | None) -> int | None:
    """ExpireTime of an order that is good till a time: 1 to 86,399 s."""
    for tag, value in options or ():
        if tag == Tag.EXPIRE_TIME and isinstance(value, int) and 1 <= value < 86_400:
            return value
    return None


def _options(options: Options, firm: str) -> tuple[int, int, int, int]:
    """(flags, peak, minimum quantity, self-trade prevention). Raises RefusedError."""
    flags = peak = min_qty = stp = 0
    for tag, value in options:
        if tag == Tag.MAX_FLOOR:
            peak = _number(value)
        elif tag == Tag.MIN_QTY:
            min_qty = _number(value)
        elif tag == Tag.POST_ONLY:
            flags |= OrderFlag.POST_ONLY if value == "P" else 0
        elif tag == Tag.AIQ_STRATEGY:
            found = _AIQ.get(str(value).upper())
            if found is None:
                raise RefusedError(Reject.OTHER)
            stp = found
        elif tag == Tag.PRICE_TYPE and value != "L":
            raise RefusedError(Reject.INVALID_PEG_TYPE)
        elif tag == Tag.FIRM and value not in ("", firm):
            raise RefusedError(Reject.FIRM_NOT_AUTHORIZED)
        elif tag in _REFUSED:
            raise RefusedError(_REFUSED[tag])
        elif tag not in _NOTED and tag not in (Tag.PRICE_TYPE, Tag.BBO_WEIGHT_INDICATOR):
            raise RefusedError(Reject.OTHER)
    return flags, peak, min_qty, stp


def _number(value: Value) -> int:
    return value if isinstance(value, int) else 0


def reject_reason(reason: int, order: EnterOrder) -> Reject:
    """The matching engine's reason in OUCH's terms."""
    if reason == Reason.BAD_COMBINATION:
        tags = {tag for tag, _ in order.options or ()}
        if Tag.MIN_QTY in tags:
            return Reject.INVALID_MIN_QUANTITY
        return Reject.INVALID_MAX_FLOOR if Tag.MAX_FLOOR in tags else Reject.OTHER
    return _REJECTS.get(reason, Reject.OTHER)


_REJECTS: Final[Mapping[int, Reject]] = {
    Reason.BAD_SIDE: Reject.INVALID_SIDE, Reason.BAD_PRICE: Reject.INVALID_PRICE,
    Reason.BAD_QTY: Reject.INVALID_QUANTITY, Reason.BAD_LOCATE: Reject.INVALID_SYMBOL,
    Reason.TICK: Reject.INVALID_PRICE, Reason.BAND: Reject.INVALID_PRICE, Reason.STATE: Reject.HALTED,
    Reason.FULL: Reject.PROCESSING_ERROR, Reason.DUPLICATE_ID: Reject.PROCESSING_ERROR,
}  # fmt: skip

#: The matching engine's reasons for a cancel in OUCH's terms.
CANCELS: Final[Mapping[int, Cancel]] = {
    Reason.USER: Cancel.USER_REQUESTED, Reason.MASS: Cancel.USER_REQUESTED,
    Reason.IN_FLIGHT: Cancel.USER_REQUESTED, Reason.DISCONNECT: Cancel.SYSTEM, Reason.EXPIRED: Cancel.CLOSED,
    Reason.IOC: Cancel.IMMEDIATE_OR_CANCEL, Reason.FOK: Cancel.IMMEDIATE_OR_CANCEL,
    Reason.MIN_QTY: Cancel.IMMEDIATE_OR_CANCEL, Reason.NO_LIQUIDITY: Cancel.IMMEDIATE_OR_CANCEL,
    Reason.PROTECTION: Cancel.MARKET_COLLARS, Reason.BAND: Cancel.MARKET_COLLARS,
    Reason.SELF_TRADE: Cancel.SELF_MATCH_PREVENTION, Reason.STATE: Cancel.HALTED,
    Reason.POST_ONLY: Cancel.POST_ONLY,
}  # fmt: skip
