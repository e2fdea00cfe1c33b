"""One table in one file. Written under a temporary name; `finish` gives it its own, `drop` removes it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from trident_core.errors import InputError
from trident_core.export.columns import Layout

#: Zstandard's fastest: on these columns higher levels cost twice the time for a few percent.
ZSTD_LEVEL: Final = 1


class Format(StrEnum):
    """A format, which is also the suffix of its files."""

    PARQUET = "parquet"
    ARROW = "arrow"
    CSV = "csv"


class TableFile:
    """A file that grows by RecordBatches. Raises InputError, naming the file, when the disk refuses."""

    def __init__(self, path: Path, layout: Layout, form: Format, metadata: Mapping[str, str]) -> None:
        self.path, self.rows = path, 0
        self.part = path.with_name(f".{path.name}.part")
        self._schema = layout.schema.with_metadata(dict(metadata))
        self._writer = self._guard(lambda: _OPENERS[form](self.part, self._schema, layout))
        self._form = form

    def write(self, batch: Any) -> None:
        """Append a RecordBatch; in Parquet, it becomes a row group."""
        self.rows += batch.num_rows
        self._guard(lambda: self._writer.write(batch))

    def close(self, metadata: Mapping[str, str]) -> None:
        """End the file; Parquet takes more `metadata` into its footer."""
        self._guard(lambda: self._writer.close(dict(metadata)))

    def finish(self) -> None:
        """Give the closed file its name, in place of an older one."""
        self._guard(lambda: os.replace(self.part, self.path))

    def drop(self) -> None:
        """Leave nothing behind. Never raises."""
        with contextlib.suppress(Exception):  # a writer that failed before may fail again
            self._writer.close({})
        self.part.unlink(missing_ok=True)

    def _guard(self, action: Callable[[], Any]) -> Any:
        try:
            return action()
        except OSError as error:
            raise InputError(
                f"{self.path} cannot be written: {error.strerror or error}",
                hint="is there room, and may you write there?",
            ) from error


class _Parquet:
    def __init__(self, path: Path, schema: Any, layout: Layout) -> None:
        import pyarrow.parquet as pq

        names = schema.names
        dense = [name for name in ("ts_event", "seq", "sequence") if name in names]
        self._writer = pq.ParquetWriter(
            path, schema, compression="zstd", compression_level=ZSTD_LEVEL,
            use_dictionary=layout.repetitive(), write_statistics=layout.ordered(),
            column_encoding=dict.fromkeys(dense, "DELTA_BINARY_PACKED"),
        )  # fmt: skip

    def write(self, batch: Any) -> None:
        self._writer.write_batch(batch, row_group_size=max(1, batch.num_rows))

    def close(self, metadata: dict[str, str]) -> None:
        if self._writer.is_open:
            self._writer.add_key_value_metadata(metadata)
            self._writer.close()


class _Arrow:
    def __init__(self, path: Path, schema: Any, layout: Layout) -> None:
        options = pa.ipc.IpcWriteOptions(compression="zstd", emit_dictionary_deltas=True)
        self._writer = pa.ipc.new_file(path, schema, options=options)

    def write(self, batch: Any) -> None:
        self._writer.write_batch(batch)

    def close(self, metadata: dict[str, str]) -> None:
        self._writer.close()


class _Csv:
    """Symbols as text, for a CSV has no dictionary."""

    def __init__(self, path: Path, schema: Any, layout: Layout) -> None:
        from pyarrow import csv

        plain = [
            field.with_type(pa.string()) if pa.types.is_dictionary(field.type) else field for field in schema
        ]
        self._schema = pa.schema(plain)
        self._writer = csv.CSVWriter(path, self._schema)

    def write(self, batch: Any) -> None:
        columns = [
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            for column in batch.columns
        ]
        self._writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=self._schema))

    def close(self, metadata: dict[str, str]) -> None:
        self._writer.close()


_OPENERS: Final[Mapping[Format, Callable[[Path, Any, Layout], Any]]] = {
    Format.PARQUET: _Parquet,
    Format.ARROW: _Arrow,
    Format.CSV: _Csv,
}
