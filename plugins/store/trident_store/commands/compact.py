"""`trident compact STORE`: what the store's thread would do in time, now."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import emit, number, progress, table
from trident_store.commands.common import bytes_told, engine_of, require_portable

if TYPE_CHECKING:
    from rich.console import Console


def compact(
    store: common.StorePath,
    fanout: Annotated[
        int, typer.Option("--fanout", min=2, max=64, help="So many neighbours become one.")
    ] = 8,
    rate: Annotated[
        float, typer.Option("--rate", min=0, help="Write at most so many MB/s; 0 is as fast as it goes.")
    ] = 0.0,
    engine: common.StoreName = None,
    json: common.Json = False,
) -> None:
    """Put the log into tables, then merge neighbouring tables until no level has enough of them.

    Ctrl-C ends it at any moment; the store is as good as before.
    """
    spec = engine_of(store, engine)
    require_portable(spec, store, "compact", f"{spec.name} does it by itself")
    from trident_store.tools.compacting import compact as run

    with progress("compacting", unit="bytes", quiet=json, start="opening") as advance:
        done = run(store, fanout=fanout, bytes_per_s=int(rate * 1e6), advance=bytes_told(advance))
    data = asdict(done) | {"store": str(store)}
    emit(data, as_json=json, render=lambda out: _render(out, data))


def _render(out: Console, data: dict[str, Any]) -> None:
    rows = table(data["store"], "what", ">before", ">after")
    rows.add_row("segments", str(data["segments_before"]), str(data["segments_after"]))
    rows.add_row("tables", str(data["tables_before"]), str(data["tables_after"]))
    rows.add_row("bytes", number(data["bytes_before"]), number(data["bytes_after"]))
    out.print(rows)
    written = data["flushed_bytes"] + data["compacted_bytes"]
    rate = written / data["seconds"] / 1e6 if data["seconds"] else 0.0
    out.print(
        f"written: {number(data['flushed_bytes'])} bytes from the log, {number(data['compacted_bytes'])} by "
        f"merging, {rate:.0f} MB/s"
    )
