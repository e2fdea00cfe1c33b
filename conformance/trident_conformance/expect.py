"""Holding what engines say against what vectors say: for the suites, and for `regen`, which holds the
references."""

from __future__ import annotations

from typing import Any

from trident_conformance import drive, vectors


def parsed(found: drive.Parsed, data: dict[str, Any]) -> None:
    """All that a parser vector says of its bytes, but for the typed rows."""
    __tracebackhide__ = True
    frames = vectors.to_frames(data["frames"])
    drive.same(found.events, vectors.to_events(data["events"]), "events")
    drive.equal("counts", found.counts, data["counts"])
    drive.equal("anomalies", found.anomalies, data.get("anomalies", {}))
    drive.equal("status", found.status.name, data.get("status", "OK"))
    drive.equal("consumed", found.consumed, data.get("consumed", len(frames)))
    drive.equal("position", found.position, found.consumed)
    drive.equal("next_seq", found.next_seq, data.get("next_seq", 1 + sum(data["counts"].values())))
    if "directory" in data:
        symbols = {str(locate): symbol for locate, (symbol, _) in found.directory.items()}
        drive.equal("directory", symbols, data["directory"])
    for locate, details in data.get("details", {}).items():
        drive.equal(f"details of {locate}", found.directory[int(locate)][1], details)


def books(book: Any, data: dict[str, Any]) -> None:
    """All that a book vector says of the books after its events; and that the book finds itself sound."""
    __tracebackhide__ = True
    for locate, sides in data["levels"].items():
        for side, rows in sides.items():
            expected = vectors.to_levels(rows)
            drive.same(book.levels(int(locate), side), expected, f"levels of {locate} {side}")
            drive.same(book.levels(int(locate), side, 1), expected[:1], f"best level of {locate} {side}")
    for locate, rows in data["orders"].items():
        drive.equal(f"orders of {locate}", [_order(order) for order in book.orders(int(locate))], rows)
    drive.equal("live orders", book.live_orders(), sum(len(rows) for rows in data["orders"].values()))
    for locate, name in data.get("state", {}).items():
        drive.equal(f"state of {locate}", book.state(int(locate)), vectors.to_state(name))
    locates = data.get("locates", sorted({event.get("locate", 1) for event in data["events"]} - {0}))
    drive.equal("locates", book.locates().tolist(), locates)
    drive.equal("anomalies", drive.counted(book.anomalies), data.get("anomalies", {}))
    drive.equal("digest", book.digest().hex(), data["digest"])
    drive.equal("violations", book.validate(), [])


def _order(order: Any) -> list[Any]:
    """An order as a vector has it."""
    mpid = bytes(order["mpid"]).rstrip(b"\0").decode("latin-1")
    numbers = [int(order[name]) for name in ("price", "qty", "ts")]
    return [int(order["ref"]), chr(order["side"]), *numbers, mpid]
