"""What stores are compared with: other people's stores, used well. Each keeps groups of events in one folder.

Key-value stores hold a block of events per key, which is 7 to 37 times faster from Python than a record per
key; where an order must be found they hold a record per key (reference, seq) instead.
"""

from __future__ import annotations

import os
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from trident_core.dtypes import EVENT, Events

Lookup = Callable[[int], int]


class Peer(ABC):
    """One store in a folder of its own. `name` says what it is; `module` must be installed.

    `append` adds a group, durably when `sync`; `close` ends writing. Class methods read what is there:
    `reopen` opens as after a crash and counts events, `prices` sums a column, `lookup` finds events by order.
    """

    name: ClassVar[str]
    modules: ClassVar[tuple[str, ...]] = ()
    #: False where a file that was not closed cannot be read at all.
    reopens: ClassVar[bool] = True
    #: False where every commit is synced.
    unsynced: ClassVar[bool] = True
    #: False where some million events take too long to be timed.
    at_length: ClassVar[bool] = False

    def __init__(self, folder: Path, *, sync: bool) -> None:
        folder.mkdir()
        self.folder, self.sync = folder, sync
        self.begin()

    @classmethod
    def missing(cls) -> list[str]:
        return [module for module in cls.modules if find_spec(module) is None]

    @abstractmethod
    def begin(self) -> None:
        """Make the store in `folder`."""

    @abstractmethod
    def append(self, group: Events) -> None: ...

    @abstractmethod
    def close(self) -> None: ...

    @classmethod
    def reopen(cls, folder: Path) -> Any:
        """Open as the next process would after a kill, ready to go on; returns what must be closed."""
        raise TypeError(f"{cls.name} cannot be read before it is closed")  # `reopens` is False

    @classmethod
    @abstractmethod
    def prices(cls, folder: Path) -> Callable[[], int]:
        """A function that sums the prices of all events."""

    @classmethod
    def lookup(cls, folder: Path, events: Events) -> Lookup | None:
        """A function: order reference -> how many events have it. None: it has no index worth the name."""
        return None


class RawFile(Peer):
    name = "raw append"
    at_length = True

    def begin(self) -> None:
        self._file = open(self.folder / "events", "wb", buffering=0)  # noqa: SIM115

    def append(self, group: Events) -> None:
        self._file.write(group.data)
        if self.sync:
            os.fdatasync(self._file.fileno())

    def close(self) -> None:
        self._file.close()

    @classmethod
    def reopen(cls, folder: Path) -> Any:
        file = open(folder / "events", "r+b")  # noqa: SIM115
        file.truncate(os.path.getsize(folder / "events") // EVENT.itemsize * EVENT.itemsize)
        return file

    @classmethod
    def prices(cls, folder: Path) -> Callable[[], int]:
        mapped = np.memmap(folder / "events", EVENT, "r")
        return lambda: int(mapped["price"].sum())


class Sqlite(Peer):
    name = "SQLite, a row per event"

    def begin(self) -> None:
        self._connection = sqlite3.connect(self.folder / "events.db", isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA synchronous = {'FULL' if self.sync else 'OFF'}")
        self._connection.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, price INTEGER, data BLOB)")

    def append(self, group: Events) -> None:
        rows = [(int(e["seq"]), int(e["price"]), e.tobytes()) for e in group]
        self._connection.execute("BEGIN")
        self._connection.executemany("INSERT INTO event VALUES (?, ?, ?)", rows)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()

    @classmethod
    def reopen(cls, folder: Path) -> Any:
        connection = sqlite3.connect(folder / "events.db")
        connection.execute("SELECT max(seq) FROM event").fetchone()
        return connection

    @classmethod
    def prices(cls, folder: Path) -> Callable[[], int]:
        connection = sqlite3.connect(folder / "events.db")
        return lambda: int(connection.execute("SELECT sum(price) FROM event").fetchone()[0])

    @classmethod
    def lookup(cls, folder: Path, events: Events) -> Lookup | None:
        connection = sqlite3.connect(folder / "orders.db")
        connection.execute("CREATE TABLE event (ref INTEGER, seq INTEGER, data BLOB)")
        rows = [(int(e["ref"]), int(e["seq"]), e.tobytes()) for e in events]
        connection.executemany("INSERT INTO event VALUES (?, ?, ?)", rows)
        connection.execute("CREATE INDEX by_ref ON event (ref)")
        connection.commit()
        query = "SELECT data FROM event WHERE ref = ?"
        return lambda ref: len(connection.execute(query, (ref,)).fetchall())


def _prices_of_blocks(blocks: Callable[[], Any]) -> Callable[[], int]:
    return lambda: sum(int(np.frombuffer(block, EVENT)["price"].sum()) for block in blocks())


def _order_key(ref: int, seq: int) -> bytes:
    return ref.to_bytes(8, "big") + seq.to_bytes(8, "big")


class Lmdb(Peer):
    name = "LMDB, a block per value"
    modules = ("lmdb",)
    _MAP: Final = 1 << 36
    at_length = True

    def begin(self) -> None:
        import lmdb

        self._environment = lmdb.open(str(self.folder), map_size=self._MAP, sync=self.sync)

    def append(self, group: Events) -> None:
        with self._environment.begin(write=True) as transaction:
            transaction.put(int(group["seq"][0]).to_bytes(8, "big"), group.tobytes(), append=True)

    def close(self) -> None:
        self._environment.close()

    @classmethod
    def reopen(cls, folder: Path) -> Any:
        import lmdb

        environment = lmdb.open(str(folder), map_size=cls._MAP)
        environment.stat()
        return environment

    @classmethod
    def prices(cls, folder: Path) -> Callable[[], int]:
        import lmdb

        environment = lmdb.open(str(folder), map_size=cls._MAP, readonly=True)

        def blocks() -> Any:
            with environment.begin(buffers=True) as transaction:
                yield from (value for _, value in transaction.cursor())

        return _prices_of_blocks(blocks)

    @classmethod
    def lookup(cls, folder: Path, events: Events) -> Lookup | None:
        import lmdb

        environment = lmdb.open(str(folder / "orders"), map_size=cls._MAP, sync=False)
        with environment.begin(write=True) as transaction:
            for event in np.sort(events, order=["ref", "seq"]):
                transaction.put(_order_key(int(event["ref"]), int(event["seq"])), event.tobytes())

        def find(ref: int) -> int:
            first, found = ref.to_bytes(8, "big"), 0
            with environment.begin() as transaction:
                cursor = transaction.cursor()
                if cursor.set_range(first):
                    for key, _ in cursor:
                        if key[:8] != first:
                            break
                        found += 1
            return found

        return find


class RocksDb(Peer):
    name = "RocksDB, a block per value"
    modules = ("rocksdict",)
    at_length = True

    def begin(self) -> None:
        from rocksdict import Options, Rdict, WriteOptions

        self._database = Rdict(str(self.folder), Options(raw_mode=True))
        self._how = WriteOptions()
        self._how.sync = self.sync

    def append(self, group: Events) -> None:
        self._database.put(int(group["seq"][0]).to_bytes(8, "big"), group.tobytes(), write_opt=self._how)

    def close(self) -> None:
        self._database.close()

    @classmethod
    def reopen(cls, folder: Path) -> Any:
        from rocksdict import Options, Rdict

        return Rdict(str(folder), Options(raw_mode=True))

    @classmethod
    def prices(cls, folder: Path) -> Callable[[], int]:
        database = cls.reopen(folder)
        return _prices_of_blocks(lambda: database.values())

    @classmethod
    def lookup(cls, folder: Path, events: Events) -> Lookup | None:
        database = cls.reopen(folder / "orders")
        for event in np.sort(events, order=["ref", "seq"]):
            database[_order_key(int(event["ref"]), int(event["seq"]))] = event.tobytes()
        database.flush()

        def find(ref: int) -> int:
            first, found = ref.to_bytes(8, "big"), 0
            for key in database.keys(from_key=first):
                if key[:8] != first:
                    break
                found += 1
            return found

        return find


def _arrow(group: Events) -> Any:
    """The events as a table, a column for each field."""
    import pyarrow as pa

    names = [name for name in EVENT.names or () if name != "aux"]
    columns = [pa.array(group[name]) for name in names]
    aux = pa.py_buffer(np.ascontiguousarray(group["aux"]))
    columns.append(pa.Array.from_buffers(pa.binary(8), len(group), [None, aux]))
    return pa.table(columns, names=[*names, "aux"])


class DuckDb(Peer):
    name = "DuckDB, Arrow in"
    modules = ("duckdb", "pyarrow")
    unsynced = False

    def begin(self) -> None:
        import duckdb

        self._connection = duckdb.connect(str(self.folder / "events.duckdb"))
        self._connection.register("batch", _arrow(np.zeros(0, EVENT)))
        self._connection.execute("CREATE TABLE event AS SELECT * FROM batch")
        if not self.sync:  # one commit for everything
            self._connection.execute("BEGIN")

    def append(self, group: Events) -> None:
        self._connection.register("batch", _arrow(group))
        self._connection.execute("INSERT INTO event SELECT * FROM batch")

    def close(self) -> None:
        if not self.sync:
            self._connection.execute("COMMIT")
        self._connection.close()

    @classmethod
    def reopen(cls, folder: Path) -> Any:
        import duckdb

        connection = duckdb.connect(str(folder / "events.duckdb"))
        connection.execute("SELECT max(seq) FROM event").fetchone()
        return connection

    @classmethod
    def prices(cls, folder: Path) -> Callable[[], int]:
        connection = cls.reopen(folder)
        return lambda: int(connection.execute("SELECT sum(price) FROM event").fetchone()[0])

    @classmethod
    def lookup(cls, folder: Path, events: Events) -> Lookup | None:
        connection = cls.reopen(folder)
        return lambda ref: len(connection.execute("SELECT * FROM event WHERE ref = ?", [ref]).fetchall())


class Parquet(Peer):
    name = "Parquet zstd, a row group each"
    modules = ("pyarrow",)
    reopens = False

    def begin(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._file = open(self.folder / "events.parquet", "wb")  # noqa: SIM115
        self._sink = pa.PythonFile(self._file, "w")
        schema = _arrow(np.zeros(0, EVENT)).schema
        self._writer = pq.ParquetWriter(self._sink, schema, compression="zstd")

    def append(self, group: Events) -> None:
        self._writer.write_table(_arrow(group))
        if self.sync:
            self._file.flush()
            os.fdatasync(self._file.fileno())

    def close(self) -> None:
        self._writer.close()
        with suppress(ValueError):
            self._file.close()

    @classmethod
    def prices(cls, folder: Path) -> Callable[[], int]:
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        path = folder / "events.parquet"
        return lambda: int(pc.sum(pq.read_table(path, columns=["price"])["price"]).as_py())


PEERS: Final[Sequence[type[Peer]]] = (RawFile, RocksDb, Lmdb, Sqlite, DuckDb, Parquet)
