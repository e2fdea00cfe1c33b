"""`trident dump PATH`: any file of a store for people."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import console, printable
from trident_core.errors import UsageError


def dump(
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A file of a store, or the store's folder.")],
    blocks: Annotated[
        bool, typer.Option("--blocks", help="Of tables also each block and its zone map.")
    ] = False,
    at: Annotated[
        int | None, typer.Option("--at", min=0, help="The events of the frame or block at this offset.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="At most so many lines; 0 is all.")] = 0,
    json: common.Json = False,
) -> None:
    """List the records of segments, tables, manifests and marks: offset, bytes, what it is, whether its CRC
    checks, and its fields. Works on damaged files. With --json one object a line.
    """
    from trident_store.tools.dump import dump as rows_of
    from trident_store.tools.dump import events_at

    if at is not None:
        if path.is_dir():
            raise UsageError(f"{path} is a folder", hint="--at takes one file of it")
        rows: Iterator[dict[str, Any]] = (_event(event) for event in events_at(path, at))
    else:
        rows = rows_of(path, blocks=blocks)
    out, shown, file = console(), 0, ""
    for row in rows:
        if limit and shown == limit:
            out.print(f"stopped at --limit {limit}") if not json else None
            return
        shown += 1
        if json:
            print(jsonlib.dumps(row))
            continue
        if row.get("file", "") != file:
            file = row["file"]
            out.print(file)
        print(printable(_line(row)))


def _line(row: dict[str, Any]) -> str:
    if "what" not in row:
        return " ".join(f"{name}={value}" for name, value in row.items())
    checks = {True: "ok ", False: "BAD", None: "   "}[row["checks"]]
    known = ("file", "offset", "bytes", "what", "checks")
    fields = " ".join(f"{name}={value}" for name, value in row.items() if name not in known)
    return f"{row['offset']:>12} {row['bytes']:>10} {checks} {row['what']:<14} {fields}".rstrip()


def _event(event: Any) -> dict[str, Any]:
    data: dict[str, Any] = {
        name: int(event[name]) for name in event.dtype.names if name not in ("aux", "type", "side")
    }
    letters = {name: chr(event[name]) if event[name] else "" for name in ("type", "side")}
    return data | letters | {"aux": event["aux"].tobytes().hex()}
