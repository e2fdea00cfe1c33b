"""What files are made of: the metadata that every conversion writes, and the MD5 of its source."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import threading
from pathlib import Path
from typing import Any, Final

from trident_core import __version__
from trident_core.inputs import Opened
from trident_core.session import Session
from trident_core.stats import RunStats

#: Written beside the files: what they are made of, in every format.
SUMMARY: Final = "trident.json"


def origin(opened: Opened) -> dict[str, str]:
    """What is known of the source before the first byte is read."""
    session = opened.session
    return {
        "trident.version": __version__,
        "trident.created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "trident.source": Path(opened.source.name).name,
        "trident.engines": json.dumps(opened.engines),
        "trident.venue": session.venue,
        "trident.session_date": session.date.isoformat() if session.date else "",
        "trident.tz": session.tz,
        "trident.midnight_utc_ns": str(session.midnight_ns()),
    }


def outcome(stats: RunStats) -> dict[str, str]:
    """What is known at the end."""
    return {
        "trident.messages": str(stats.events),
        "trident.counts": json.dumps(stats.counts),
        "trident.anomalies": json.dumps(stats.anomalies.to_json()),
        "trident.live_orders": str(stats.live_orders),
        "trident.book_digest": stats.digest,
        "trident.complete": str(not stats.cut).lower(),
    }


def missing_symbols(session: Session, symbols: tuple[str, ...]) -> tuple[str, ...]:
    """The symbols that are not in the directory. Raises UsageError if that is all of them."""
    known = set(session.directory.symbols()) if symbols else set()
    missing = tuple(name for name in symbols if name not in known)
    if missing and len(missing) == len(symbols):
        session.directory.locate(missing[0])  # raises, with the nearest names
    return missing


def write_summary(folder: Path, summary: dict[str, Any]) -> None:
    """Put `summary` into the folder, whole or not at all."""
    part = folder / f".{SUMMARY}.part"
    part.write_text(json.dumps(summary, indent=2, default=str) + "\n")
    os.replace(part, folder / SUMMARY)


class SourceMd5:
    """MD5 of a file as it lies there, compressed or not, by a thread beside the run; nothing for a pipe."""

    def __init__(self, path: Path | None) -> None:
        self._digest, self._stop = "", threading.Event()
        self._thread = threading.Thread(target=self._read, args=(path,), name="trident-md5", daemon=True)
        if path and path.is_file():
            self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def result(self) -> dict[str, str]:
        if self._thread.ident is not None:
            self._thread.join()
        return {"trident.source_md5": self._digest} if self._digest else {}

    def _read(self, path: Path) -> None:
        digest = hashlib.md5(usedforsecurity=False)
        with open(path, "rb") as file:
            while not self._stop.is_set() and (data := file.read(1 << 22)):
                digest.update(data)
        if not self._stop.is_set():
            self._digest = digest.hexdigest()
