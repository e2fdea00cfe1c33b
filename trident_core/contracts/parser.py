"""Parsers: framed messages become EVENTs and typed tables, and back."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:  # listing plugins must not wait for numpy
    import numpy as np
    from numpy.typing import NDArray

    from trident_core.dtypes import Events, Frames
    from trident_core.session import Session
    from trident_core.stats import Anomalies


class Status(IntEnum):
    """Why `parse_into` stopped."""

    OK = 0  # every byte was consumed
    NEED_MORE = 1  # the bytes from `consumed` on are the start of one more message
    OUT_FULL = 2  # `out` is full; call again with the bytes from `consumed` on
    MALFORMED = 3  # the bytes at `consumed` cannot be framed
    END = 4  # an end-of-session mark was consumed; what follows is not of this session


class ParseResult(NamedTuple):
    consumed: int  # bytes of `frames` used
    count: int  # type: ignore[assignment]  # events written to `out`; shadows tuple.count
    status: Status


class Parser(Protocol):
    """Framed bytes -> EVENTs: exactly one for each message of a known type and length, in order.

    A format whose messages are parts of events has a page that says which make none, or several.

    Factory: `Parser(session: Session, *, lenient: bool = False)`. State across calls: `next_seq`, the
    sequence number of the next message (starts at 1; every framed message takes one, skipped ones too; the
    caller may set it between calls); `position`, the source offset of the next byte (the caller may set it);
    `counts`, u64[256], messages by type byte, skipped ones included. The parser puts every symbol it meets
    into `session.directory`. Unknown types and wrong lengths are skipped, and counted in `anomalies` at their
    source offsets. Any split of the input gives the same events, counts and anomalies.
    """

    session: Session
    anomalies: Anomalies
    counts: NDArray[np.uint64]
    next_seq: int
    position: int

    def parse_into(self, frames: Frames, out: Events) -> ParseResult:
        """Parse whole messages of `frames` (u8[n], may be read-only) into `out` (EVENT[m], m >= 1).

        Never reads past a message, never writes past `count`. Raises UsageError only for wrong arrays.
        """
        ...


@runtime_checkable
class TableParser(Protocol):
    """Capability TABLES."""

    def parse_tables(self, frames: Frames, types: str = "") -> dict[str, NDArray[Any]]:
        """All whole messages of `frames` as typed rows: type letter -> structured array, one dtype per type.

        `types`: rows of these letters only; empty means all. State moves the same for any `types`.

        The first field is `seq`; then every field of the specification after the type, by name, in native
        byte order; letters and texts as the bytes of the wire (`S`), padding included, so that `encode_rows`
        is exact. Only types that occur are in the answer. Uses and advances `next_seq`, `position`, `counts`
        and `anomalies` as `parse_into` does.
        """
        ...


@runtime_checkable
class Encoder(Protocol):
    """Capability ENCODE: the inverse of the parser. parse(encode(x)) == x for events and for typed rows."""

    def encode_events(self, events: Events) -> Frames:
        """EVENTs back to framed messages, in order. Symbols come from `session.directory`.

        Fields that EVENT does not have are zero (numbers) or blank (texts). Raises UsageError, naming the
        index and the column, for a value that the wire format cannot hold.
        """
        ...

    def encode_rows(self, type_letter: str, rows: NDArray[Any]) -> Frames:
        """Typed rows of one type back to framed messages, in order, byte for byte."""
        ...
