"""The journal: everything that came into the exchange from outside, in a Trident store, in the order it
acted.

What the exchange says is a function of its journal, so the journal is all that must survive. A record is a
kind, an account (0: the exchange), a time and some bytes; it stands in one or several EVENTs of the store:

    seq    the row's number, from 1        type   the kind, or "+" for the further rows of a record
    ts     the record's time               side   how many of the row's 40 bytes are used
    locate the account                     flags  rows of the record that follow

with the bytes in ref, ref2, price, qty and aux, 40 a row. No kind is a letter of ITCH. An order of OUCH
takes two rows. A record whose last rows are missing was torn by a crash before it was acknowledged: it is
left out.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from trident_core.contracts import Kind, Store
from trident_core.dtypes import EVENT, Events
from trident_core.errors import StoreError
from trident_core.plugins import registry
from trident_core.session import Session
from trident_core.stores import select_store

ROW_BYTES: Final = 40
#: Longest record: a configuration with ten thousand symbols takes less.
RECORD_MAX: Final = ROW_BYTES * 0xFFFF
_ROW: Final = struct.Struct("<QQ32sIBBH8s")
_MORE: Final = ord("+")


class What(StrEnum):
    """Kinds of records."""

    CONFIG = "c"  # the configuration, as JSON: the first record, and the only one of its kind
    ACCOUNT = "a"  # the account was opened: its name and firm, as JSON
    MESSAGE = "m"  # a message of OUCH
    GONE = "g"  # the account's connection is gone, and its orders go with it
    COMMAND = "x"  # an operator's command, as JSON
    TIME = "t"  # it is `ts` now, and something was due


class Record(NamedTuple):
    """One record. `message`: what `data` says, where somebody has decoded it already; it is not kept."""

    what: str
    account: int
    ts: int
    data: bytes
    message: Any = None


def encode_records(records: Iterable[Record], first: int) -> Events:
    """EVENT[n]: the rows of `records`; `first` is the number of the first row."""
    out = bytearray()
    seq = first
    for what, account, ts, data, _ in records:
        count = max(1, -(-len(data) // ROW_BYTES))
        kind = ord(what)
        for left in range(count - 1, -1, -1):
            part = data[:ROW_BYTES]
            data = data[ROW_BYTES:]
            out += _ROW.pack(seq, ts, part[:32], account, kind, len(part), left, part[32:])
            kind = _MORE
            seq += 1
    return np.frombuffer(out, EVENT)


class Decoder:
    """Rows back to records, whatever the batches. `rows`: how many there were; `torn_rows`: how many of them
    belong to records that are not whole."""

    def __init__(self) -> None:
        self.rows = self.torn_rows = 0
        self._parts: list[bytes] = []
        self._head = (0, 0, 0)
        self._left = 0

    def feed(self, events: Events) -> Iterator[Record]:
        """The records that `events` complete. Raises StoreError, with the row, for what is no journal."""
        raw = np.ascontiguousarray(events).tobytes()
        for seq, ts, front, account, kind, used, left, back in _ROW.iter_unpack(raw):
            self.rows += 1
            first = kind != _MORE
            if used > ROW_BYTES or not (first or (self._parts and left == self._left - 1)):
                raise StoreError(
                    f"row {seq} of the journal does not continue the one before it",
                    hint="is this folder the journal of an exchange?",
                )
            if first:
                self.torn_rows += len(self._parts)  # a crash tore what came before, and it was never answered
                self._parts = []
                self._head = kind, account, ts
            self._parts.append((front + back)[:used])
            self._left = left
            if not left:
                kind, account, ts = self._head
                yield Record(chr(kind), account, ts, b"".join(self._parts))
                self._parts = []

    def finish(self) -> None:
        """There are no more rows."""
        self.torn_rows += len(self._parts)
        self._parts = []


class Journal:
    """The journal of one exchange in the store at `path`, which is made when it is not there.

    `append` may be called from another thread than the one that made it, one call at a time.
    """

    def __init__(self, path: Path, session: Session, *, store: str | None = None) -> None:
        self.path = path
        existing = path.exists() and any(path.iterdir())
        if existing:
            self.store: Store = select_store(path, store).make(path, "append")
        else:
            path.mkdir(parents=True, exist_ok=True)
            self.store = registry().select(Kind.STORE, store).make(path, "create", session)
        self.rows = int(self.store.stats()["events"])
        self.torn_rows = 0

    def read(self) -> Iterator[Record]:
        """All records, from the first on."""
        decoder = Decoder()
        snapshot = self.store.snapshot()
        try:
            for events in snapshot.scan():
                yield from decoder.feed(events)
        finally:
            snapshot.close()
        decoder.finish()
        self.torn_rows = decoder.torn_rows

    def append(self, records: Iterable[Record]) -> None:
        """Write the records and make them durable. Raises StoreError: then none may be acknowledged."""
        events = encode_records(records, self.rows + 1)
        self.store.append(events)
        self.store.sync()
        self.rows += len(events)

    def close(self) -> None:
        self.store.close()
