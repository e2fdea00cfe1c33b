"""Opening an input: find the feed that knows its bytes, and the session its name tells."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from trident_core.contracts import ByteSource, Chunk, Feed, FeedOptions, Kind
from trident_core.errors import InputError
from trident_core.plugins import Registry, registry
from trident_core.session import Session
from trident_core.source import open_source, session_date, venue

#: How much of the (decompressed) input the feeds see to recognise their format.
HEAD_BYTES = 1 << 16


class Primed:
    """A feed whose first chunk has been read already.

    What the feed learns or refuses there (a capture's date, an input without anything usable) is known before
    anything is created for it. Raises at once what the feed raises.
    """

    def __init__(self, feed: Feed) -> None:
        self.protocol, self.anomalies = feed.protocol, feed.anomalies
        self._chunks = iter(feed)
        self._first = next(self._chunks, None)

    @classmethod
    def detect(cls, head: bytes, name: str) -> int:
        return 0

    def __iter__(self) -> Iterator[Chunk]:
        first, self._first = self._first, None
        if first is not None:
            yield first
            yield from self._chunks


def open_feed(
    path: str | Path,
    *,
    feed: str | None = None,
    date: dt.date | None = None,
    options: FeedOptions | None = None,
    plugins: Registry | None = None,
) -> tuple[Feed, ByteSource, Session]:
    """Open `path` ("-" is standard input) with the feed that recognises it, or with the one named `feed`.

    Raises InputError when the path cannot be read or no feed recognises the bytes.
    """
    plugins = plugins or registry()
    source = open_source(path)
    try:
        head = source.peek(HEAD_BYTES)
        name = feed or _detect(plugins, head, source.name)
        selection = plugins.select(Kind.FEED, name)
        session = Session(date=date or session_date(source.name), venue=venue(source.name))
        made = selection.make(source, session, options or FeedOptions())
        session.protocol = made.protocol
    except BaseException:
        source.close()
        raise
    return cast(Feed, made), source, session


def _detect(plugins: Registry, head: bytes, name: str) -> str:
    """Name of the feed that is surest of `head`."""
    best, best_score, broken = "", 0, []
    for spec in plugins.engines(Kind.FEED):
        try:
            score = int(spec.load().detect(head, name))
        except Exception as error:  # a stranger's code
            broken.append(f"{spec.name}: {error!r}")
            continue
        if score > best_score:
            best, best_score = spec.name, score
    if best:
        return best
    known = ", ".join(spec.name for spec in plugins.engines(Kind.FEED))
    hint = f"feeds installed: {known}; name one with --feed to force it"
    if broken:
        hint += f"; could not ask {'; '.join(broken)}"
    raise InputError(f"{name}: no feed recognises this input (it begins with {head[:8].hex(' ')})", hint=hint)
