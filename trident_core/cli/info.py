"""`trident info FILE`: what is in a file, without building books."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from trident_core.cli import common
from trident_core.cli.output import emit, number, progress, render_anomalies, table
from trident_core.inputs import open_input
from trident_core.session import format_time

if TYPE_CHECKING:
    from rich.console import Console

    from trident_core.session import Session
    from trident_core.stats import RunStats


def info(
    file: common.Input,
    feed: common.FeedName = None,
    parser: common.ParserName = None,
    date: common.Date = None,
    lenient: common.Lenient = False,
    port: common.Port = None,
    json: common.Json = False,
) -> None:
    """Count what is in FILE: messages per type, symbols, time range, anomalies, how it ends."""
    from trident_core.pipeline import Line

    opened = open_input(
        file,
        feed=feed,
        parser=parser,
        date=common.parse_date(date),
        lenient=lenient,
        port=port,
        with_book=False,
    )
    try:
        with progress("reading", quiet=json) as advance:
            line = Line(opened.feed, opened.source, opened.parser, progress=advance)
            stats = line.run()
    finally:
        opened.close()
    stats.engines = opened.engines
    emit(_data(stats, opened.session), as_json=json, render=lambda out: _render(out, stats, opened.session))
    if stats.interrupted:
        raise typer.Exit(130)


def _data(stats: RunStats, session: Session) -> dict[str, object]:
    keep = ("source", "engines", "events", "counts", "first_ts", "last_ts", "first_seq", "last_seq")
    data = stats.to_json()
    described = session.to_json()
    described["symbols"] = len(described.pop("directory"))
    return {key: data[key] for key in keep} | {
        "session": described,
        "ends": _end_state(stats),
        "anomalies": data["anomalies"],
    }


def _end_state(stats: RunStats) -> str:
    """How the input ends, in one phrase."""
    if stats.interrupted:
        return "not known: interrupted before the end"
    if stats.anomalies.count("malformed"):
        return "at bytes that cannot be framed"
    if stats.anomalies.count("torn_tail"):
        return "inside a message (torn tail)"
    if stats.anomalies.count("truncated_stream") or stats.anomalies.count("corrupt_stream"):
        return "where the compressed stream is cut or damaged"
    return "on a message boundary"


def _render(out: Console, stats: RunStats, session: Session) -> None:
    rows = table(stats.source, "what", "~value")
    rows.add_row("protocol, venue", f"{session.protocol}, {session.venue}")
    rows.add_row("session date", session.date.isoformat() if session.date else "unknown (give --date)")
    rows.add_row("messages", number(stats.events))
    if stats.events:
        rows.add_row("time of day", f"{format_time(stats.first_ts)} to {format_time(stats.last_ts)}")
        rows.add_row("sequence numbers", f"{number(stats.first_seq)} to {number(stats.last_seq)}")
    rows.add_row("symbols", number(stats.symbols))
    rows.add_row("ends", _end_state(stats))
    out.print(rows)
    counts = table("messages by type", "type", ">count", ">share")
    total = sum(stats.counts.values()) or 1
    for letter, count in sorted(stats.counts.items(), key=lambda item: -item[1]):
        shown = letter if letter.isprintable() and letter.isascii() else f"0x{ord(letter):02x}"
        counts.add_row(shown, number(count), f"{100 * count / total:.2f} %")
    out.print(counts)
    render_anomalies(out, stats.anomalies.to_json())
