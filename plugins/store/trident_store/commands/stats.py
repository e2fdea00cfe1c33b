"""`trident stats STORE`: figures of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trident_core.cli import common
from trident_core.cli.output import emit, number, progress, table
from trident_core.stores import reading
from trident_store.commands.common import engine_of, is_portable

if TYPE_CHECKING:
    from rich.console import Console


def stats(store: common.StorePath, engine: common.StoreName = None, json: common.Json = False) -> None:
    """Events, bytes, files, levels, write, space and read amplification, and the filters' measured rate."""
    spec = engine_of(store, engine)
    with progress("measuring", quiet=json, start="reading indexes"):
        if is_portable(spec):
            from trident_store.filesystem import OsFileSystem
            from trident_store.tools.figures import figures

            data: dict[str, Any] = {"store": str(store), "engine": spec.name} | figures(OsFileSystem(), store)
        else:
            with reading(store, spec.name) as (opened, _):
                data = {"store": str(store), "engine": spec.name} | opened.stats()
    emit(data, as_json=json, render=lambda out: _render(out, data))


def _render(out: Console, data: dict[str, Any]) -> None:
    rows = table(data["store"], "what", ">value")
    if "levels" not in data:
        for name, value in data.items():
            if isinstance(value, int):
                rows.add_row(name.replace("_", " "), number(value))
        out.print(rows)
        out.print(f"levels, amplification and filters are not known of {data['engine']}'s files")
        return
    rows.add_row("events", number(data["events"]))
    rows.add_row(
        "  in the log, in tables",
        f"{number(data['events_in']['log'])}, {number(data['events_in']['tables'])}",
    )
    rows.add_row("last seq, durable seq", f"{number(data['last_seq'])}, {number(data['durable_seq'])}")
    rows.add_row("symbols", number(data["symbols"]))
    rows.add_row("format, epoch", f"{data['format']}, {data['epoch']}")
    rows.add_row("bytes of the log", number(data["bytes"]["log"]))
    rows.add_row("bytes of tables", number(data["bytes"]["tables"]))
    rows.add_row("bytes on disk", number(data["bytes"]["on_disk"]))
    rows.add_row("bytes an event", f"{data['bytes_per_event']:.1f}")
    amplification = data["amplification"]
    rows.add_row("space amplification", f"{amplification['space']:.3f}")
    rows.add_row("write amplification", f"{amplification['write']:.3f}")
    if data["levels"]:
        rows.add_row("tables opened for a look-up", f"{amplification['read_tables_per_lookup']:.3f}")
        bloom = data["bloom"]
        rows.add_row("filters: bits an entry", f"{bloom['bits_per_entry']:.1f}")
        rows.add_row("filters: false positives", f"{bloom['rate']:.3%} of {number(bloom['asked'])}")
    out.print(rows)
    if data["levels"]:
        shown = table("levels", ">level", ">tables", ">events", ">bytes", ">of them indexes")
        for level in data["levels"]:
            shown.add_row(
                str(level["level"]), number(level["tables"]), number(level["events"]), number(level["bytes"]),
                number(level["index_bytes"]),
            )  # fmt: skip
        out.print(shown)
