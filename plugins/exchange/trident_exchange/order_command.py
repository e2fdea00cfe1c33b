"""`trident order WORDS`: one order, or a conversation, with an exchange that runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from trident_core.cli.output import print_error, printable
from trident_core.errors import TridentError, UsageError

if TYPE_CHECKING:
    from trident_exchange.client import Client
    from trident_exchange.ouch.messages import Outbound

_WORDS: Final = (
    "buy|sell QUANTITY SYMBOL [PRICE] [ioc] [hidden] [post] [show=QUANTITY] [min=QUANTITY] [for=SECONDS]; "
    "replace NUMBER QUANTITY PRICE; cancel NUMBER [QUANTITY]; mass [SYMBOL]; query"
)
_HELP: Final = f"{_WORDS}. Without: lines of standard input."


def order(
    words: Annotated[list[str] | None, typer.Argument(metavar="[WORDS]...", help=_HELP)] = None,
    port: Annotated[
        int | None, typer.Option("--port", "-p", min=1, max=65_535, help="The exchange's order port.")
    ] = None,
    user: Annotated[str, typer.Option("--user", "-u", help="Up to 6 characters.")] = "ME",
    password: Annotated[str, typer.Option("--password", help="Up to 10 characters.")] = "",
    since: Annotated[
        int, typer.Option("--since", min=0, help="Show messages from this number on; 0: new ones only.")
    ] = 0,
    wait: Annotated[float, typer.Option("--wait", min=0, help="Seconds to wait for answers.")] = 0.5,
    json: Annotated[bool, typer.Option("--json", help="Answers as JSON, one in a line.")] = False,
) -> None:
    """Send orders to `trident exchange` and show what it answers."""
    from trident_exchange.client import Client

    if port is None:
        raise UsageError("which port?", hint="`trident exchange` prints it: --port 26001")
    with Client(port, user=user, password=password, sequence=since) as client:
        lines = [" ".join(words)] if words else sys.stdin
        if sys.stdin.isatty() and not words:
            print(_WORDS, file=sys.stderr)
        _show(client, 0.05 if since else 0.0, json)
        for line in lines:
            if not line.strip():
                continue
            try:
                ask(client, line)
            except TridentError as error:
                if words:
                    raise
                print_error(error)
            _show(client, wait if words or sys.stdin.isatty() else 0.0, json)
        _show(client, 0.0 if words or sys.stdin.isatty() else wait, json)


def ask(client: Client, line: str) -> None:
    """Send what a line says. Raises UsageError with what can be said."""
    from trident_exchange.ouch import messages as m

    words = line.split()
    do, rest = words[0].lower(), words[1:]
    try:
        if do in ("buy", "sell"):
            _enter(client, do, rest)
        elif do == "replace":
            client.replace(int(rest[0]), int(rest[1]), rest[2])
        elif do == "cancel":
            client.cancel(int(rest[0]), int(rest[1]) if len(rest) > 1 else 0)
        elif do == "mass":
            client.send(m.MassCancel(client.new_number(), "", rest[0].upper() if rest else ""))
        elif do == "query":
            client.send(m.AccountQuery())
        else:
            raise ValueError
    except (IndexError, ValueError):
        raise UsageError(f"not an order: {line.strip()!r}", hint=_WORDS) from None


def _enter(client: Client, side: str, words: list[str]) -> None:
    from trident_exchange.ouch.options import Tag

    quantity, symbol = int(words[0]), words[1].upper()
    price: str | None = None
    changes: dict[str, Any] = {}
    options: list[tuple[int, int | str | bytes]] = []
    numbers = {"show": Tag.MAX_FLOOR, "min": Tag.MIN_QTY, "for": Tag.EXPIRE_TIME}
    for word in words[2:]:
        name, equals, value = word.lower().partition("=")
        if equals and name in numbers:
            options.append((numbers[name], int(value)))
            if name == "for":
                changes["time_in_force"] = "6"
        elif name == "ioc":
            changes["time_in_force"] = "3"
        elif name == "hidden":
            changes["display"] = "N"
        elif name == "post":
            options.append((Tag.POST_ONLY, "P"))
        elif price is None and word[:1].isdigit():
            price = word
        else:
            raise ValueError
    if options:
        changes["options"] = tuple(options)
    client.enter("B" if side == "buy" else "S", symbol, quantity, price, **changes)


def _show(client: Client, wait: float, as_json: bool) -> None:
    import json

    number = client.next
    for message in client.messages(wait):
        if as_json:
            print(json.dumps({"type": type(message).__name__, **message._asdict()}, default=str), flush=True)
        else:
            print(f"{number:>6}  {printable(describe(message))}", flush=True)
        number += 1
    if client.ended:
        for text in client.debug:
            print(f"note: {printable(text)}", file=sys.stderr)


def describe(message: Outbound) -> str:
    """One line for people: '#3 executed 40 at 150.25, removed liquidity, match 7'."""
    from trident_core.session import format_price, format_time
    from trident_exchange.ouch import messages as m
    from trident_exchange.ouch.codes import CANCEL_TEXTS, MARKET_PRICE, reject_text

    def price(value: int) -> str:
        return "market" if value == MARKET_PRICE else format_price(value, 4)

    time = format_time(message[0])[:15]
    match message:
        case m.Accepted() | m.Replaced():
            what = "accepted" if isinstance(message, m.Accepted) else f"takes the place of #{message[1]}"
            state = "" if message.order_state == "L" else ", dead"
            side = "buy" if message.side == "B" else "sell"
            text = (
                f"#{message.user_ref_num} {what}: {side} {message.quantity:,} {message.symbol} "
                f"at {price(message.price)}, reference {message.order_reference_number}{state}"
            )
        case m.Executed():
            flag = {"A": "added", "R": "removed", "J": "added, hidden"}.get(message.liquidity_flag, "cross")
            text = (
                f"#{message.user_ref_num} executed {message.quantity:,} at {price(message.price)} ({flag}), "
                f"match {message.match_number}"
            )
        case m.Canceled():
            why = CANCEL_TEXTS.get(message.reason, message.reason)
            text = f"#{message.user_ref_num} canceled {message.quantity:,}: {why}"
        case m.Rejected():
            text = f"#{message.user_ref_num} rejected: {reject_text(message.reason)}"
        case m.SystemEvent():
            text = {"S": "start of day", "E": "end of day"}.get(message.event_code, message.event_code)
        case _:
            shown = ", ".join(f"{k} {v}" for k, v in message._asdict().items() if k != "timestamp" and v)
            text = f"{type(message).__name__}: {shown}"
    return f"{time}  {text}"
