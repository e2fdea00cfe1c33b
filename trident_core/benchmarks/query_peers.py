"""What query engines are compared with: other people's engines, used well. Any may be missing."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, ClassVar, Final

from trident_core.benchmarks.query_data import Column

#: Values that engines are asked which take one at a time.
SAMPLE: Final = 200_000

#: (milliseconds to compile, a function that counts)
Ready = tuple[float | None, Callable[[], int]]


def timed(make: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    made = make()
    return 1e3 * (time.perf_counter() - began), made


class ColumnPeer(ABC):
    """One engine over a column. `units`: how many of its first values it is asked (None: all)."""

    name: ClassVar[str]
    module: ClassVar[str]
    units: ClassVar[int | None] = None

    @classmethod
    def missing(cls) -> bool:
        return find_spec(cls.module) is None

    @abstractmethod
    def __init__(self, column: Column) -> None:
        """Take the column in its own form, off the clock."""

    @abstractmethod
    def ready(self, pattern: str) -> Ready:
        """Count the values that match."""


def _arrow(column: Column) -> Any:
    import pyarrow as pa

    texts = pa.array([value.rstrip().decode() for value in column.distinct.tolist()])
    return texts.take(pa.array(column.codes))


class PyArrow(ColumnPeer):
    name = "pyarrow"
    module = "pyarrow"

    def __init__(self, column: Column) -> None:
        self.texts = _arrow(column)

    def ready(self, pattern: str) -> Ready:
        import pyarrow.compute as pc

        return None, lambda: int(pc.sum(pc.match_substring_regex(self.texts, pattern)).as_py() or 0)


class Polars(ColumnPeer):
    name = "polars"
    module = "polars"

    def __init__(self, column: Column) -> None:
        import polars as pl

        self.texts = pl.Series(_arrow(column))

    def ready(self, pattern: str) -> Ready:
        return None, lambda: int(self.texts.str.contains(pattern).sum())


class DuckDb(ColumnPeer):
    name = "duckdb"
    module = "duckdb"

    def __init__(self, column: Column) -> None:
        import duckdb
        import pyarrow as pa

        self.connection = duckdb.connect()
        self.connection.register("arrow", pa.table({"s": _arrow(column)}))
        self.connection.execute("CREATE TABLE t AS SELECT s FROM arrow")
        self.connection.unregister("arrow")

    def ready(self, pattern: str) -> Ready:
        query = f"SELECT count(*) FROM t WHERE regexp_matches(s, '{pattern}')"
        return None, lambda: int(self.connection.execute(query).fetchone()[0])  # type: ignore[index]


class Re2(ColumnPeer):
    name = "google-re2, a call per value"
    module = "re2"
    units = SAMPLE

    def __init__(self, column: Column) -> None:
        self.values = [value.rstrip() for value in column.values[:SAMPLE].tolist()]

    def ready(self, pattern: str) -> Ready:
        import re2

        ms, search = timed(lambda: re2.compile(pattern.encode()).search)
        return ms, lambda: sum(search(value) is not None for value in self.values)


class PythonRe(ColumnPeer):
    name = "python re, a call per value"
    module = "re"
    units = SAMPLE

    def __init__(self, column: Column) -> None:
        self.values = [value.rstrip() for value in column.values[:SAMPLE].tolist()]

    def ready(self, pattern: str) -> Ready:
        re.purge()
        ms, search = timed(lambda: re.compile(pattern.encode()).search)
        return ms, lambda: sum(search(value) is not None for value in self.values)


class HyperscanColumn(ColumnPeer):
    """Values on lines of their own in one text; it calls back for each match, and lines are counted there."""

    name = "hyperscan, a line per value"
    module = "hyperscan"

    def __init__(self, column: Column) -> None:
        import numpy as np

        lines = np.full((len(column.values), 9), 10, np.uint8)
        lines[:, :8] = column.values.view(np.uint8).reshape(-1, 8)
        self.text = lines.tobytes()

    def ready(self, pattern: str) -> Ready:
        import hyperscan

        ms, database = timed(lambda: hyperscan_database(pattern, hyperscan.HS_FLAG_MULTILINE))

        def run() -> int:
            count, last = 0, -1

            def hit(_id: int, _start: int, end: int, _flags: int, _context: object) -> None:
                nonlocal count, last
                line = (end - 1) // 9
                if line != last:
                    count, last = count + 1, line

            database.scan(self.text, hit)
            return count

        return ms, run


def hyperscan_database(pattern: str, flags: int) -> Any:
    import hyperscan

    database = hyperscan.Database(mode=hyperscan.HS_MODE_BLOCK)
    database.compile(expressions=[pattern.encode()], flags=[flags])
    return database


COLUMN_PEERS: Final[tuple[type[ColumnPeer], ...]] = (
    PyArrow, Polars, DuckDb, Re2, HyperscanColumn, PythonRe,
)  # fmt: skip


# --- texts --------------------------------------------------------------------------------------------------


def hyperscan_text(data: bytes, pattern: str, flags: str) -> Ready:
    """Counts where matches end."""
    import hyperscan

    caseless = hyperscan.HS_FLAG_CASELESS if "i" in flags else 0
    ms, database = timed(lambda: hyperscan_database(pattern, caseless))

    def run() -> int:
        ends = []
        database.scan(data, lambda _id, _start, end, _flags, _context: ends.append(end))
        return len(set(ends))

    return ms, run


def re2_text(data: bytes, pattern: str, flags: str) -> Ready:
    """Counts matches that do not overlap."""
    import re2

    options = re2.Options()
    options.case_sensitive = "i" not in flags
    options.encoding = re2.Options.Encoding.LATIN1
    ms, compiled = timed(lambda: re2.compile(pattern.encode("latin-1"), options))
    return ms, lambda: sum(1 for _ in compiled.finditer(data))


#: name -> (module, how).
TEXT_PEERS: Final[dict[str, tuple[str, Callable[[bytes, str, str], Ready]]]] = {
    "hyperscan": ("hyperscan", hyperscan_text),
    "google-re2": ("re2", re2_text),
}
