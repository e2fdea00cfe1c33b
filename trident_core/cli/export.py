"""`trident export STORE OUT`: events of a store into one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import emit, number, progress
from trident_core.errors import UsageError
from trident_core.stores import reading

if TYPE_CHECKING:
    from trident_core.session import Session


def export(
    store: common.StorePath,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="A new file: .parquet, .arrow, .csv or .itch.")],
    form: Annotated[
        str | None, typer.Option("--format", help="parquet, arrow, csv or itch; else by OUT's name.")
    ] = None,
    symbols: common.Symbols = "",
    types: Annotated[str, typer.Option("--types", help="Only these types, as letters: AFECXDU.")] = "",
    since: Annotated[str | None, typer.Option("--from", help="From this time of day: 09:30.")] = None,
    until: Annotated[str | None, typer.Option("--to", help="Up to this time of day.")] = None,
    seq: Annotated[
        str | None,
        typer.Option("--seq", metavar="A:B", help="Sequence numbers A to B; either may be left out."),
    ] = None,
    engine: common.StoreName = None,
    json: common.Json = False,
) -> None:
    """Write the events of STORE that match all the filters to OUT.

    Parquet, Arrow and CSV have a row for each event; itch is the wire format again, to be run or converted.
    """
    from trident_core.events_out import Format, watched, write_events

    text = form or out.suffix.removeprefix(".")
    wanted = common.choice(Format, text, "format")
    low, high = common.parse_at(since), common.parse_at(until)
    if low is not None and high is not None and low > high:
        raise UsageError(f"--from {since} is later than --to {until}")
    with reading(store, engine) as (opened, _), progress("exporting", quiet=json) as advance:
        snapshot = opened.snapshot()
        try:
            filters: dict[str, Any] = {
                "seq": parse_seq(seq), "ts": (low, high), "locates": locates_of(snapshot.session, symbols),
                "types": types.encode("ascii", "replace") or None,
            }  # fmt: skip
            events = watched(snapshot.scan(**filters), snapshot.last_seq, advance)
            count = write_events(events, out, wanted, snapshot.session)
        finally:
            snapshot.close()
    data = {"out": str(out), "format": wanted.value, "events": count, "bytes": out.stat().st_size}
    line = f"{out}: {number(count)} events, {wanted.value}, {number(int(data['bytes']))} bytes"
    emit(data, as_json=json, render=lambda shown: shown.print(line))


def parse_seq(text: str | None) -> tuple[int | None, int | None]:
    """'A:B', 'A:', ':B' or 'A' as a closed range. Raises UsageError."""
    if text is None:
        return None, None
    low, colon, high = text.partition(":")
    try:
        first = int(low) if low else None
        last = (int(high) if high else None) if colon else first
    except ValueError:
        raise UsageError(
            f"not a range of sequence numbers: {text!r}", hint="write 100:200, 100: or :200"
        ) from None
    return first, last


def locates_of(session: Session, symbols: str) -> list[int] | None:
    """The locates of the symbols named; None for all. Raises UsageError for a symbol that is not there."""
    names = common.parse_symbols(symbols)
    return [session.directory.locate(name) for name in names] if names else None
