"""Trusted stores as they are used without Trident: a record per row or key, settings as they come.

What they say of damage in the bit-rot matrix is said with their own checks only.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from trident_core.dtypes import Events

Rows = Sequence[tuple[int, bytes]]


@dataclass(frozen=True)
class Peer:
    """`fill` writes groups of (seq, record) into a folder, durably, and calls `killed` before it closes;
    `read` yields the records in order. `module` must be installed."""

    name: str
    module: str
    fill: Callable[[Path, Sequence[Rows], Callable[[], None]], None]
    read: Callable[[Path], Iterator[bytes]]

    @property
    def installed(self) -> bool:
        return find_spec(self.module) is not None


def rows_of(events: Events) -> Rows:
    return [(int(event["seq"]), event.tobytes()) for event in events]


def _key(seq: int) -> bytes:
    return seq.to_bytes(8, "big")


def _fill_sqlite(folder: Path, groups: Sequence[Rows], killed: Callable[[], None]) -> None:
    with closing(sqlite3.connect(folder / "events.db")) as connection:
        connection.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, data BLOB)")
        for rows in groups:
            with connection:
                connection.executemany("INSERT INTO event VALUES (?, ?)", rows)
        killed()


def _read_sqlite(folder: Path) -> Iterator[bytes]:
    with closing(sqlite3.connect(f"file:{folder / 'events.db'}?mode=rw", uri=True)) as connection:
        yield from (row[0] for row in connection.execute("SELECT data FROM event ORDER BY seq"))


def _fill_lmdb(folder: Path, groups: Sequence[Rows], killed: Callable[[], None]) -> None:
    import lmdb

    with closing(lmdb.open(str(folder))) as environment:
        for rows in groups:
            with environment.begin(write=True) as transaction:
                for seq, data in rows:
                    transaction.put(_key(seq), data)
        killed()


def _read_lmdb(folder: Path) -> Iterator[bytes]:
    import lmdb

    with closing(lmdb.open(str(folder), create=False)) as environment, environment.begin() as transaction:
        yield from (value for _, value in transaction.cursor())


def _fill_rocksdb(folder: Path, groups: Sequence[Rows], killed: Callable[[], None]) -> None:
    from rocksdict import Options, Rdict, WriteBatch, WriteOptions

    durably = WriteOptions()
    durably.sync = True
    with closing(Rdict(str(folder), Options(raw_mode=True))) as database:
        for rows in groups:
            batch = WriteBatch(raw_mode=True)
            for seq, data in rows:
                batch.put(_key(seq), data)
            database.write(batch, durably)
        killed()


def _read_rocksdb(folder: Path) -> Iterator[bytes]:
    from rocksdict import Options, Rdict

    options = Options(raw_mode=True)
    options.create_if_missing(False)
    with closing(Rdict(str(folder), options)) as database:
        values: Any = database.values()
        yield from values


def _fill_duckdb(folder: Path, groups: Sequence[Rows], killed: Callable[[], None]) -> None:
    import duckdb

    with closing(duckdb.connect(str(folder / "events.duckdb"))) as connection:
        connection.execute("CREATE TABLE event (seq UBIGINT, data BLOB)")
        for rows in groups:
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO event VALUES (?, ?)", rows)
            connection.execute("COMMIT")
        killed()


def _read_duckdb(folder: Path) -> Iterator[bytes]:
    import duckdb

    if not (folder / "events.duckdb").exists():
        raise FileNotFoundError("events.duckdb")  # connect would make a new one
    with closing(duckdb.connect(str(folder / "events.duckdb"))) as connection:
        rows = connection.execute("SELECT data FROM event ORDER BY seq").fetchall()
        yield from (row[0] for row in rows)


#: By name. The records are EVENTs of 64 bytes.
PEERS: Final = {
    peer.name: peer
    for peer in (
        Peer("RocksDB", "rocksdict", _fill_rocksdb, _read_rocksdb),
        Peer("LMDB", "lmdb", _fill_lmdb, _read_lmdb),
        Peer("SQLite", "sqlite3", _fill_sqlite, _read_sqlite),
        Peer("DuckDB", "duckdb", _fill_duckdb, _read_duckdb),
    )
}
