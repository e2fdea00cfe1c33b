"""The messages of OUCH 5.0, one class each. Types, widths and letters stand in
`trident_exchange.ouch.layout`.

Prices are u64 with 4 decimals, quantities u32 shares, times nanoseconds since midnight (New York). Texts are
printable ASCII without the padding of the wire. `options` is the appendage (see
`trident_exchange.ouch.options`); None where the message ends before the appendage's length, which the
specification allows for some.

Source: Nasdaq OUCH 5.0 Order Entry Specification, sections 2 (inbound) and 3 (outbound).
"""

from __future__ import annotations

from typing import NamedTuple

from trident_exchange.ouch.options import Options

# --- inbound: from the client to the exchange -------------------------------------------------------------


class EnterOrder(NamedTuple):
    """O (2.1): a new order. `user_ref_num` is unique in the day and grows strictly on its port."""

    user_ref_num: int
    side: str
    quantity: int
    symbol: str
    price: int
    time_in_force: str
    display: str
    capacity: str
    intermarket_sweep: str
    cross_type: str
    cl_ord_id: str
    options: Options | None = ()


class ReplaceOrder(NamedTuple):
    """U (2.2): a live order's heir, under a new number. `quantity` counts what the chain has executed,
    too."""

    orig_user_ref_num: int
    user_ref_num: int
    quantity: int
    price: int
    time_in_force: str
    display: str
    intermarket_sweep: str
    cl_ord_id: str
    options: Options | None = ()


class CancelOrder(NamedTuple):
    """X (2.3): `quantity` is what is to be left of the order, executions included; 0 cancels what rests."""

    user_ref_num: int
    quantity: int
    options: Options | None = None


class ModifyOrder(NamedTuple):
    """M (2.4): another kind of sale (S, T short, E short exempt) or fewer shares, without losing priority."""

    user_ref_num: int
    side: str
    quantity: int
    options: Options | None = None


class MassCancel(NamedTuple):
    """C (2.5): all orders of a firm; a blank symbol means all symbols. Options: Side, GroupID."""

    user_ref_num: int
    firm: str
    symbol: str
    options: Options | None = ()


class DisableOrderEntry(NamedTuple):
    """D (2.6): the firm's new orders are rejected on this port from now on."""

    user_ref_num: int
    firm: str
    options: Options | None = ()


class EnableOrderEntry(NamedTuple):
    """E (2.7): ends a Disable Order Entry."""

    user_ref_num: int
    firm: str
    options: Options | None = ()


class AccountQuery(NamedTuple):
    """Q (2.8): asks for the next free UserRefNum."""

    options: Options | None = None


Inbound = (
    EnterOrder | ReplaceOrder | CancelOrder | ModifyOrder
    | MassCancel | DisableOrderEntry | EnableOrderEntry | AccountQuery
)  # fmt: skip

# --- outbound: from the exchange to the client ------------------------------------------------------------


class SystemEvent(NamedTuple):
    """S (3.1): "S" start of day, "E" end of day. It has no appendage."""

    timestamp: int
    event_code: str


class Accepted(NamedTuple):
    """A (3.2): an order as it was accepted. `order_state`: "L" live, "D" dead (cancelled at once)."""

    timestamp: int
    user_ref_num: int
    side: str
    quantity: int
    symbol: str
    price: int
    time_in_force: str
    display: str
    order_reference_number: int
    capacity: str
    intermarket_sweep: str
    cross_type: str
    order_state: str
    cl_ord_id: str
    options: Options | None = ()


class Replaced(NamedTuple):
    """U (3.3): `quantity` is what is open after the replace."""

    timestamp: int
    orig_user_ref_num: int
    user_ref_num: int
    side: str
    quantity: int
    symbol: str
    price: int
    time_in_force: str
    display: str
    order_reference_number: int
    capacity: str
    intermarket_sweep: str
    cross_type: str
    order_state: str
    cl_ord_id: str
    options: Options | None = ()


class Canceled(NamedTuple):
    """C (3.4): so many shares are gone, for one of CANCEL_REASONS."""

    timestamp: int
    user_ref_num: int
    quantity: int
    reason: str
    options: Options | None = None


class AiqCanceled(NamedTuple):
    """D (3.5): shares taken off by self-match prevention, and the trade that did not take place."""

    timestamp: int
    user_ref_num: int
    decrement_shares: int
    reason: str
    quantity_prevented: int
    execution_price: int
    liquidity_flag: str
    aiq_strategy: str
    options: Options | None = None


class Executed(NamedTuple):
    """E (3.6): `match_number` is the same for both sides of the trade."""

    timestamp: int
    user_ref_num: int
    quantity: int
    price: int
    liquidity_flag: str
    match_number: int
    options: Options | None = ()


class BrokenTrade(NamedTuple):
    """B (3.7): the execution of that match number is void."""

    timestamp: int
    user_ref_num: int
    match_number: int
    reason: str
    cl_ord_id: str
    options: Options | None = None


class Rejected(NamedTuple):
    """J (3.8): an Enter or a Replace was refused, for one of REJECT_REASONS; its number is used up."""

    timestamp: int
    user_ref_num: int
    reason: int
    cl_ord_id: str
    options: Options | None = None


class CancelPending(NamedTuple):
    """P (3.9): the cancel is taken, and acts after the cross."""

    timestamp: int
    user_ref_num: int
    options: Options | None = None


class CancelReject(NamedTuple):
    """I (3.10): the cancel is refused, for the order takes part in a cross."""

    timestamp: int
    user_ref_num: int
    options: Options | None = None


class PriorityUpdate(NamedTuple):
    """T (3.11): the order has a new place in its queue, under a new reference number."""

    timestamp: int
    user_ref_num: int
    price: int
    display: str
    order_reference_number: int
    options: Options | None = None


class Modified(NamedTuple):
    """M (3.12): answers a Modify; `quantity` is what is open."""

    timestamp: int
    user_ref_num: int
    side: str
    quantity: int
    options: Options | None = None


class Restated(NamedTuple):
    """R (3.13): "R" a reserve order showed its next part, "P" the displayed price moved."""

    timestamp: int
    user_ref_num: int
    reason: str
    options: Options | None = ()


class MassCancelResponse(NamedTuple):
    """X (3.14): what was asked for, after the Canceled of each order."""

    timestamp: int
    user_ref_num: int
    firm: str
    symbol: str
    options: Options | None = ()


class DisableOrderEntryResponse(NamedTuple):
    """G (3.15)."""

    timestamp: int
    user_ref_num: int
    firm: str
    options: Options | None = ()


class EnableOrderEntryResponse(NamedTuple):
    """K (3.16)."""

    timestamp: int
    user_ref_num: int
    firm: str
    options: Options | None = ()


class AccountQueryResponse(NamedTuple):
    """Q (3.17): the next UserRefNum that may be used."""

    timestamp: int
    next_user_ref_num: int
    options: Options | None = None


Outbound = (
    SystemEvent | Accepted | Replaced | Canceled | AiqCanceled | Executed | BrokenTrade | Rejected
    | CancelPending | CancelReject | PriorityUpdate | Modified | Restated | MassCancelResponse
    | DisableOrderEntryResponse | EnableOrderEntryResponse | AccountQueryResponse
)  # fmt: skip
Message = Inbound | Outbound
