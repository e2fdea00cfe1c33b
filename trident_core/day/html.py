"""What a notebook shows: a depth table for a book, a summary for a day."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trident_core.dtypes import Levels
from trident_core.session import format_price, format_time

if TYPE_CHECKING:
    from trident_core.day.day import Day
    from trident_core.day.inputs import Survey
    from trident_core.day.snapshot import BookSnapshot

#: Levels of each side that a depth table shows.
LEVELS: Final = 10
_BID, _ASK = "0,128,80", "200,60,60"


def book_html(book: BookSnapshot) -> str:
    """The best LEVELS levels, bids left and asks right; bars show the shares."""
    bids, asks = book.bids[:LEVELS], book.asks[:LEVELS]
    largest = max((int(side["qty"].max()) for side in (bids, asks) if len(side)), default=1)
    rows = []
    for n in range(max(len(bids), len(asks))):
        left = _cells(bids, n, book.price_decimals, f"to left,rgba({_BID},.3) {_share(bids, n, largest)}%")
        right = _cells(asks, n, book.price_decimals, f"to right,rgba({_ASK},.3) {_share(asks, n, largest)}%")
        rows.append(f"<tr>{left[0]}{left[1]}{left[2]}{right[2]}{right[1]}{right[0]}</tr>")
    names = ("orders", "shares", "bid", "ask", "shares", "orders")
    head = "".join(f'<th style="text-align:right">{name}</th>' for name in names)
    more = [max(0, len(side) - LEVELS) for side in (book.bids, book.asks)]
    spread = "" if book.spread is None else f", spread {format_price(book.spread, book.price_decimals)}"
    title = f"<b>{escape(book.symbol or str(book.locate))}</b> at {format_time(book.ts)}"
    foot = f"{len(book.orders):,} orders; {more[0]:,} more bid and {more[1]:,} more ask levels"
    return (
        f'<table><caption style="caption-side:top;text-align:left">{title}, {book.state.name.lower()}{spread}'
        f"<br><small>{foot}</small></caption><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
    )


def day_html(day: Day, path: str, survey: Survey | None) -> str:
    """What is known of a day, without reading it."""
    session = day.session
    lines = [
        ("file", escape(Path(path).name)),
        ("session", f"{escape(session.venue)}, {session.date or 'date unknown'}, {escape(session.tz)}"),
        ("protocol", escape(session.protocol)),
    ]
    if survey is None:
        lines.append(("messages", "not read yet: the first question reads the whole input"))
    else:
        counts = ", ".join(f"{escape(letter)} {count:,}" for letter, count in _most(survey.counts.items()))
        odd = ", ".join(f"{escape(name)} {item.count:,}" for name, item in survey.anomalies.items())
        lines += [
            ("messages", f"{survey.events:,} ({counts})"),
            ("symbols", f"{len(session.directory):,}"),
            ("from, to", f"{format_time(survey.first_ts)}, {format_time(survey.last_ts)}"),
            ("anomalies", odd or "none"),
            ("engines", escape(", ".join(f"{kind} {name}" for kind, name in survey.engines.items()))),
            ("cache", f"{day.cache_bytes:,} bytes"),
        ]
    left = 'style="text-align:left"'
    rows = "".join(f"<tr><th {left}>{name}</th><td {left}>{value}</td></tr>" for name, value in lines)
    return f"<table><tbody>{rows}</tbody></table>"


def _most(counts: Iterable[tuple[str, int]]) -> list[tuple[str, int]]:
    return sorted(counts, key=lambda item: -item[1])[:6]


def _cells(side: Levels, n: int, decimals: int, bar: str) -> tuple[str, str, str]:
    """Cells with the orders, shares and price of a level; blank where there is none."""
    if n >= len(side):
        return ("<td></td>",) * 3
    level = side[n]
    orders, shares = f"{int(level['count']):,}", f"{int(level['qty']):,}"
    price = format_price(int(level["price"]), decimals)
    return _cell(orders), _cell(shares, f";background:linear-gradient({bar},transparent 0)"), _cell(price)


def _cell(text: str, style: str = "") -> str:
    return f'<td style="text-align:right;font-variant-numeric:tabular-nums{style}">{text}</td>'


def _share(side: Levels, n: int, largest: int) -> int:
    return 100 * int(side["qty"][n]) // largest if n < len(side) else 0
