"""The exchange itself: records of the journal in, messages to accounts and events of the feed out.

It reads no clock, no socket and no disk: what it says is a function of the records it was given, whatever the
batches they came in. So a journal that is read again gives every stream again, byte for byte.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Callable, Iterable
from typing import Any, Final

import numpy as np

from trident_core.contracts.matching import Matcher, Op, OrderFlag
from trident_core.dtypes import Events
from trident_core.errors import StoreError
from trident_core.orders import COMMAND, REPORT, Reports
from trident_core.publication import events_of
from trident_exchange import entering, replacing
from trident_exchange.answering import Answers, rejected, rows_of, tag_of
from trident_exchange.config import Config
from trident_exchange.journal import Record, What
from trident_exchange.open_orders import SALES, Account, OpenOrder, channel, order_id
from trident_exchange.ouch import messages as m
from trident_exchange.ouch.codec import decode_inbound, encode
from trident_exchange.ouch.codes import MARKET_PRICE, QUANTITY_LIMIT, Cancel, Reject, Tif
from trident_exchange.ouch.options import Tag, option

_ROOM: Final = 1 << 15
_NS: Final = 1_000_000_000


class Core:
    """`said`: messages of OUCH by account, and `published`: EVENTs of the feed, both since `take`. `ended`:
    the day is over. `counts`: what happened, by name."""

    def __init__(self, config: Config, matcher: Matcher) -> None:
        self.config = config
        self.matcher = matcher
        self.accounts: dict[int, Account] = {}
        self.by_name: dict[str, Account] = {}
        self.orders: dict[int, OpenOrder] = {}
        self.ended = False
        self.now = 0
        self.counts = dict.fromkeys(("messages", "orders", "ignored", "rejected", "executed"), 0)
        self._gone: set[int] = set()
        self._locates = {symbol: i + 1 for i, symbol in enumerate(config.symbols)}
        self._expiries: list[tuple[int, int]] = []
        self._said: dict[int, list[bytes]] = {}
        self._events: list[Events] = []
        self._heirs: list[int] = []
        self._raw = b""
        self._found: list[Reports] = []
        self._commands = bytearray()
        self._reports = np.zeros(_ROOM, REPORT)
        self._answers = Answers(self.orders, self._say, self.counts)
        self._handlers: dict[type[Any], Callable[[Account, Any, int], None]] = {
            m.EnterOrder: self._enter, m.ReplaceOrder: self._replace, m.CancelOrder: self._cancel,
            m.ModifyOrder: self._modify, m.MassCancel: self._mass_cancel, m.AccountQuery: self._query,
            m.DisableOrderEntry: self._disable, m.EnableOrderEntry: self._enable,
        }  # fmt: skip

    # --- records

    def apply(self, records: Iterable[Record]) -> None:
        """Carry out records, in order. Raises StoreError for a record that no exchange writes."""
        for what, number, ts, data, message in records:
            self.now = ts
            if what == What.MESSAGE:
                self._raw = data
                self._message(self.accounts[number], message or decode_inbound(data), ts)
            elif what == What.ACCOUNT:
                self._open_account(number, data)
            elif what == What.GONE:
                self._command(entering.command(Op.DISCONNECT, ts, owner=number))
            elif what == What.TIME:
                self._expire(ts)
            elif what == What.COMMAND:
                self._operate(json.loads(data), ts)
            elif what != What.CONFIG:
                raise StoreError(f"a record of kind {what!r} in the journal of an exchange")
        self._flush()

    def take(self) -> tuple[dict[int, list[bytes]], list[Events]]:
        """(messages by account, EVENTs) since the last call. EVENT.seq is not set."""
        self._settle()
        said, events = self._said, self._events
        self._said, self._events = {}, []
        return said, events

    def next_expiry(self) -> int | None:
        """When an order is due to expire."""
        return self._expiries[0][0] if self._expiries else None

    def publish(self, events: Events) -> None:
        """Events that are not of the matching engine: they stand after all that was done before."""
        self._flush()
        self._settle()
        self._events.append(events)

    def _settle(self) -> None:
        """The reports since the last time as events, all at once."""
        if self._found:
            self._events.append(events_of(np.concatenate(self._found)))
            self._found.clear()

    def _message(self, account: Account, message: m.Inbound, ts: int) -> None:
        self.counts["messages"] += 1
        if not self.ended:
            self._handlers[type(message)](account, message, ts)

    def _open_account(self, number: int, data: bytes) -> None:
        found = json.loads(data)
        account = Account(number, found["name"], found["firm"])
        self.accounts[number] = self.by_name[account.name] = account
        if found["cancel_on_disconnect"]:
            self._gone.add(number)
        self._say(number, encode(m.SystemEvent(self.now, "S")))

    def cancels_on_disconnect(self, account: Account) -> bool:
        return account.number in self._gone

    # --- messages of clients

    def _enter(self, account: Account, order: m.EnterOrder, ts: int) -> None:
        index = channel(order.options) if order.options else 0
        if not account.use(index, order.user_ref_num):
            self.counts["ignored"] += 1
            return
        self.counts["orders"] += 1
        number = account.number
        id_ = order_id(number, index, order.user_ref_num)
        try:
            if account.disabled:
                raise entering.RefusedError(Reject.FIRM_NOT_AUTHORIZED)
            locate = self._locates.get(order.symbol, 0)
            command = entering.new_order(ts, id_, number, locate, order, account.firm, number in self._gone)
        except entering.RefusedError as error:
            self._refuse(account, order.user_ref_num, error.reason, order.cl_ord_id, index, ts)
            return
        self.orders[id_] = entered = OpenOrder(number, index, order, order.quantity, raw=self._raw)
        if order.time_in_force == Tif.GTT:
            entered.expires = ts + (entering.seconds_to_live(order.options) or 0) * _NS
            self._expires(id_, entered)
        self._command(command)

    def _refuse(
        self, account: Account, user_ref_num: int, reason: Reject, cl_ord_id: str, index: int, ts: int
    ) -> None:
        self._flush()
        self.counts["rejected"] += 1
        self._say(account.number, encode(rejected(ts, user_ref_num, reason, cl_ord_id, index)))

    def _replace(self, account: Account, request: m.ReplaceOrder, ts: int) -> None:
        index = channel(request.options)
        old_id = order_id(account.number, index, request.orig_user_ref_num)
        if not account.use(index, request.user_ref_num) or old_id not in self.orders:
            self.counts["ignored"] += 1
            return
        if not 0 < request.quantity < QUANTITY_LIMIT:  # 2.2: then the order is cancelled
            self._command(entering.command(Op.CANCEL, ts, id_=old_id, owner=account.number))
            return
        try:
            heir = replacing.heir(self.orders[old_id], request, ts, account.disabled)
        except entering.RefusedError as error:
            self._flush()
            if old_id in self.orders:  # else it was gone when the replace came, and nothing is said
                self._refuse(account, request.user_ref_num, error.reason, request.cl_ord_id, index, ts)
            return
        id_ = order_id(account.number, index, request.user_ref_num)
        self.orders[id_] = heir
        self._heirs.append(id_)
        self._expires(id_, heir)
        price = 0 if request.price == MARKET_PRICE else request.price
        self._command(entering.command(
            Op.REPLACE, ts, id_=old_id, id2=id_, owner=account.number, price=price, qty=request.quantity,
            flags=OrderFlag.IN_FLIGHT,
        ))  # fmt: skip

    def _expires(self, id_: int, order: OpenOrder) -> None:
        if order.expires:
            heapq.heappush(self._expiries, (order.expires, id_))
            if len(self._expiries) > 2 * len(self.orders) + 4_096:  # mostly of orders that are gone
                self._expiries = [each for each in self._expiries if each[1] in self.orders]
                heapq.heapify(self._expiries)

    def _cancel(self, account: Account, request: m.CancelOrder, ts: int) -> None:
        id_ = order_id(account.number, channel(request.options), request.user_ref_num)
        if not request.quantity:
            self._command(entering.command(Op.CANCEL, ts, id_=id_, owner=account.number))
            return
        self._flush()
        self._reduce(id_, request.quantity, ts)

    def _reduce(self, id_: int, quantity: int, ts: int) -> bool:
        """To an intended size of `quantity`, executions included; False if that is no less than it was."""
        order = self.orders.get(id_)
        if order is None or quantity >= order.leaves + order.executed:
            self.counts["ignored"] += 1
            return False
        by = order.leaves - max(quantity - order.executed, 0)
        self._command(entering.command(Op.REDUCE, ts, id_=id_, owner=order.account, qty=by))
        return True

    def _modify(self, account: Account, request: m.ModifyOrder, ts: int) -> None:
        self._flush()
        id_ = order_id(account.number, channel(request.options), request.user_ref_num)
        order = self.orders.get(id_)
        if order is None or not {order.entered.side, request.side} <= SALES:
            self.counts["ignored"] += 1
            return
        total = order.leaves + order.executed
        if request.quantity > total:
            self.counts["ignored"] += 1
            return
        order.entered = order.entered._replace(side=request.side)
        if request.quantity < total:
            self._answers.modifying = id_
            self._reduce(id_, request.quantity, ts)
            self._flush()
            self._answers.modifying = 0
        else:
            answer = m.Modified(ts, request.user_ref_num, request.side, order.leaves, tag_of(order.index))
            self._say(account.number, encode(answer))

    def _mass_cancel(self, account: Account, request: m.MassCancel, ts: int) -> None:
        index = channel(request.options)
        if not account.use(index, request.user_ref_num):
            self.counts["ignored"] += 1
            return
        self._flush()
        locate = self._locates.get(request.symbol, 0)
        if request.firm in ("", account.firm) and (locate or not request.symbol):
            group, side = option(request.options, Tag.GROUP_ID), option(request.options, Tag.SIDE)
            for id_, order in self.orders.items():
                e = order.entered
                if order.account == account.number and request.symbol in ("", e.symbol) and (
                    side is None or e.side == side
                ) and (not group or option(e.options, Tag.GROUP_ID) == group):  # fmt: skip
                    self._command(entering.command(Op.CANCEL, ts, id_=id_, owner=account.number))
            self._flush()
        answer = m.MassCancelResponse(ts, request.user_ref_num, request.firm, request.symbol, request.options)
        self._say(account.number, encode(answer))

    def _query(self, account: Account, request: m.AccountQuery, ts: int) -> None:
        self._flush()
        index = channel(request.options)
        following = account.last.get(index, 0) + 1
        self._say(account.number, encode(m.AccountQueryResponse(ts, following, tag_of(index))))

    def _disable(self, account: Account, request: m.DisableOrderEntry, ts: int) -> None:
        self._switch(account, request, True, m.DisableOrderEntryResponse(ts, *request))

    def _enable(self, account: Account, request: m.EnableOrderEntry, ts: int) -> None:
        self._switch(account, request, False, m.EnableOrderEntryResponse(ts, *request))

    def _switch(
        self,
        account: Account,
        request: m.DisableOrderEntry | m.EnableOrderEntry,
        off: bool,
        answer: m.Message,
    ) -> None:
        if not account.use(channel(request.options), request.user_ref_num):
            self.counts["ignored"] += 1
            return
        self._flush()
        if request.firm in ("", account.firm):
            account.disabled = off
        self._say(account.number, encode(answer))

    # --- time and operators

    def _expire(self, ts: int) -> None:
        while self._expiries and self._expiries[0][0] <= ts:
            _, id_ = heapq.heappop(self._expiries)
            order = self.orders.get(id_)
            if order is not None:
                order.by = Cancel.TIMEOUT
                self._command(entering.command(Op.CANCEL, ts, id_=id_, owner=order.account))

    def _operate(self, asked: dict[str, Any], ts: int) -> None:
        from trident_exchange.operating import operate

        operate(self, asked, ts)

    def command(self, command: bytes) -> None:
        """A command of the market's operator."""
        self._command(command)

    def crossing(self, locate: int, code: int) -> None:
        """A cross of the symbol comes next; the fills of it are told with its type."""
        self._flush()
        self._answers.crossing[locate] = code

    def tell_all(self, message: m.Message) -> None:
        """The same message to every account."""
        self._flush()
        data = encode(message)
        for number in self.accounts:
            self._say(number, data)

    # --- the matching engine

    def _command(self, command: bytes) -> None:
        self._commands += command

    def _flush(self) -> None:
        """Let the matching engine do what it was asked for so far."""
        if not self._commands:
            return
        commands = np.frombuffer(self._commands, COMMAND)
        self._commands = bytearray()
        more, rows = True, []
        while len(commands) or more:
            taken, written, more = self.matcher.submit(commands, self._reports)
            commands = commands[taken:]
            found = self._reports[:written].copy()
            rows += rows_of(found)
            self._found.append(found)
        self._answers.take(rows)
        for id_ in self._heirs:  # of a replace to less than was executed, which cancelled the order instead
            if id_ in self.orders and not self.orders[id_].leaves:
                del self.orders[id_]
        self._heirs.clear()

    def _say(self, account: int, message: bytes) -> None:
        said = self._said.get(account)
        if said is None:
            self._said[account] = [message]
        else:
            said.append(message)
