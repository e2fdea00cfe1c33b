"""`trident verify STORE`: read every byte and say what is wrong."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from trident_core.cli import common
from trident_core.cli.output import coloured, emit, number, progress, table
from trident_core.contracts import Kind, Verification
from trident_core.errors import StoreError
from trident_core.plugins import registry

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console


def verify(store: common.StorePath, engine: common.StoreName = None, json: common.Json = False) -> None:
    """Check every CRC, the order of all events and segments, and what the last run acknowledged.

    Exits with 4 when anything is damaged, naming file, offset and the events affected.
    """
    with progress("verifying", quiet=json, start="reading every byte"):
        report = verify_store(store, engine)
    data = asdict(report) | {"ok": report.ok, "store": str(store)}
    emit(data, as_json=json, render=lambda out: render_report(out, store, report))
    if not report.ok:
        raise typer.Exit(StoreError.exit_code)


def verify_store(path: Path, engine: str | None) -> Verification:
    """The report of the selected engine on the store at `path`."""
    made = registry().select(Kind.STORE, engine).load()(path, "read")
    try:
        report: Verification = made.verify()
    finally:
        made.close()
    return report


def render_report(out: Console, path: Path, report: Verification) -> None:
    """The verdict, and a table of the findings."""
    verdict = ("sound", "green") if report.ok else ("damaged", "red")
    size = (
        f"{number(report.events)} events up to seq {number(report.last_seq)} in {number(report.bytes)} bytes"
    )
    out.print(coloured((f"{path}: ", ""), verdict, (f", {size}", "")))
    if report.findings:
        rows = table("findings", "severity", "file", ">offset", "events", "~problem")
        for f in report.findings:
            events = f"{f.first} to {'unknown' if f.last is None else f.last}"
            rows.add_row(f.severity, f.file, str(f.offset), events, f.problem)
        out.print(rows)
