"""`trident verify STORE`: read every byte, hold every index against the events, and say what is wrong."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trident_core.cli import common
from trident_core.cli.output import coloured, emit, number, progress, table
from trident_core.contracts import Kind, Verification, WatchedStore
from trident_core.errors import StoreError
from trident_core.stores import reading

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from trident_core.cli.output import Advance
    from trident_core.rebuild import Rebuilt


def verify(
    store: common.StorePath,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also rebuild the book from STORE alone; compare its digest.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Only bytes and indexes: do not follow every order's shares.")
    ] = False,
    book: common.BookName = None,
    engine: common.StoreName = None,
    json: common.Json = False,
) -> None:
    """Check every CRC, the order of all events, every index against the events, and that no share is lost.

    Exits with 4 when anything is damaged, naming file, offset, sequence numbers and what to do.
    """
    with progress("verifying", unit="bytes", quiet=json, start="reading every byte") as advance:
        report = verify_store(store, engine, advance)
    again: Rebuilt | None = None
    if report.ok and (deep or not quick):
        label = "rebuilding the book" if deep else "following every order"
        with progress(label, quiet=json) as advance:
            again = reread_store(store, engine, deep=deep, book=book, advance=advance)
        report.findings += again.findings
    data = asdict(report) | {"ok": report.ok, "store": str(store)}
    if again is not None:
        data |= {"shares": again.ledger, "types": again.types, "book": _book_of(again, deep)}
    emit(data, as_json=json, render=lambda out: render_report(out, store, report, again, deep=deep))
    if not report.ok:
        raise typer.Exit(StoreError.exit_code)


def verify_store(path: Path, engine: str | None, advance: Advance | None = None) -> Verification:
    """The report on the store at `path` by its engine, and on what a run recorded beside it."""
    from trident_core.digests import read_digests

    tell = advance or (lambda done, total, count: None)
    with reading(path, engine) as (store, _):
        report = (
            store.verify_watched(lambda done, total: tell(done, total, done))
            if isinstance(store, WatchedStore)
            else store.verify()
        )
    report.findings += read_digests(path)[1]
    return report


def reread_store(
    path: Path, engine: str | None, *, deep: bool, book: str | None = None, advance: Advance | None = None
) -> Rebuilt:
    """Every event of the store at `path` read once more; with `deep` the book is rebuilt of them."""
    from trident_core.digests import read_digests
    from trident_core.plugins import registry
    from trident_core.rebuild import reread

    tell = advance or (lambda done, total, count: None)
    factory: Any = registry().select(Kind.BOOK, book).load() if deep else None
    records = read_digests(path)[0]  # first: a run that ends meanwhile is not behind the snapshot
    with reading(path, engine) as (store, _):
        snapshot = store.snapshot()
        try:
            return reread(
                snapshot,
                records,
                book=factory(snapshot.session) if factory else None,
                watch=lambda done, total: tell(done, total, done),
            )
        finally:
            snapshot.close()


def _book_of(again: Rebuilt, deep: bool) -> dict[str, Any] | None:
    if not deep:
        return None
    return {"digest": again.digest, "live_orders": again.live_orders, "compared_at_events": again.compared}


def render_report(
    out: Console, path: Path, report: Verification, again: Rebuilt | None = None, *, deep: bool = False
) -> None:
    """The verdict, what was checked, and a table of the findings."""
    verdict = ("sound", "green") if report.ok else ("damaged", "red")
    size = (
        f"{number(report.events)} events up to seq {number(report.last_seq)} in {number(report.bytes)} bytes"
    )
    out.print(coloured((f"{path}: ", ""), verdict, (f", {size}", "")))
    if report.checked:
        out.print("checked: " + ", ".join(f"{number(n)} {what}" for what, n in report.checked.items()))
    if again is not None:
        shares = ", ".join(f"{number(again.ledger[each])} {each}" for each in _SHARES)
        out.print(f"shares: {shares}, the rest of {number(again.ledger['orders'])} orders rests")
        if deep:
            out.print(_book_line(again))
    if report.findings:
        rows = table("findings", "severity", "file", ">offset", "events", "seq", "~problem")
        for f in report.findings:
            events = f"{f.first} to {'unknown' if f.last is None else f.last}"
            seqs = f"{f.seqs[0]} to {f.seqs[1]}" if f.seqs else ""
            rows.add_row(f.severity, f.file, str(f.offset), events, seqs, f.problem)
        out.print(rows)
        for hint in dict.fromkeys(f.hint for f in report.findings if f.hint):
            out.print(f"hint: {hint}")


_SHARES = ("added", "executed", "cancelled", "deleted", "replaced", "evicted")


def _book_line(again: Rebuilt) -> str:
    made = f"book rebuilt: digest {again.digest[:16]}…, {number(again.live_orders)} live orders"
    if again.events in again.compared:
        return f"{made}: the digest that the run recorded"
    if again.compared:
        return f"{made}; recorded digests were met, the last one after {number(again.compared[-1])} events"
    return f"{made}; no digest is recorded for this store (no run into it came to its end)"
