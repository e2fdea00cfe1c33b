"""Events of a store into one file: Parquet, Arrow IPC, CSV, or ITCH again through a parser's encoder."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, BinaryIO, Final, Protocol

import numpy as np

from trident_core.contracts import Capability, EngineSpec, Kind
from trident_core.dtypes import Events
from trident_core.errors import InputError, PluginError, UsageError
from trident_core.plugins import registry
from trident_core.session import Session

_PAD: Final = b"\x00 "


class Format(StrEnum):
    """What a file may be; the names are the extensions."""

    PARQUET = "parquet"
    ARROW = "arrow"
    CSV = "csv"
    ITCH = "itch"


class Sink(Protocol):
    """A file that takes events."""

    def write(self, events: Events) -> None: ...

    def close(self) -> None: ...


def write_events(parts: Iterable[Events], path: Path, form: Format, session: Session) -> int:
    """Write events to a new file; how many. The file has its name only when it is whole.

    Raises UsageError when it exists, InputError when it cannot be written, PluginError without pyarrow or an
    encoder, and what `parts` raises; then no file is left.
    """
    if path.exists():
        raise UsageError(f"{path} exists already", hint="name a new file")
    work = path.with_name(f"{path.name}.partial")
    count = 0
    try:
        sink = _open(work, form, session)
        try:
            for events in parts:
                sink.write(events)
                count += len(events)
        finally:
            sink.close()
        os.replace(work, path)
    except OSError as error:
        work.unlink(missing_ok=True)
        raise InputError(
            f"{path} cannot be written: {error.strerror or error}", hint="is the disk full?"
        ) from error
    except BaseException:
        work.unlink(missing_ok=True)
        raise
    return count


def _open(path: Path, form: Format, session: Session) -> Sink:
    if form is Format.ITCH:
        return _Encoded(path, session)
    from trident_core.export import need_pyarrow

    need_pyarrow()
    return _Tabular(path, form, session)


class _Encoded:
    """The wire format of the session's protocol again, each message behind its length."""

    def __init__(self, path: Path, session: Session) -> None:
        self._encoder = encoder_for(session)
        self._file: BinaryIO = open(path, "wb")  # noqa: SIM115  closed by `close`

    def write(self, events: Events) -> None:
        self._file.write(self._encoder.encode_events(events).data)

    def close(self) -> None:
        self._file.close()


def encoder_for(session: Session) -> Any:
    """A parser of the session's protocol that can encode. Raises PluginError when there is none."""

    def fits(spec: EngineSpec) -> bool:
        return Capability.ENCODE in spec.capabilities and session.protocol in spec.protocols

    chosen = registry().select(Kind.PARSER).spec
    fitting = [spec for spec in (chosen, *registry().engines(Kind.PARSER)) if fits(spec)]
    if not fitting:
        raise PluginError(f"no parser encodes {session.protocol}", hint="export to parquet, arrow or csv")
    return fitting[0].load()(session)


class _Tabular:
    """Rows of events, a column for each field, symbols and letters as text, numbers as they are."""

    def __init__(self, path: Path, form: Format, session: Session) -> None:
        import pyarrow as pa

        self._pa = pa
        notes = {"trident": json.dumps(session.to_json() | {"directory": []})}
        text = pa.dictionary(pa.int32(), pa.string())
        kinds = {"symbol": text, "type": pa.string(), "side": pa.string(), "aux": pa.string(),
                 "price": pa.int64(), "locate": pa.uint32(), "flags": pa.uint16()}  # fmt: skip
        fields = [pa.field(name, kinds.get(name, pa.uint64())) for name in COLUMNS]
        if form is Format.CSV:
            fields = [pa.field(f.name, pa.string() if f.name == "symbol" else f.type) for f in fields]
        self._schema = pa.schema(fields, metadata=notes)
        self._plain = form is Format.CSV
        instruments = [each for each in session.directory if each.locate]
        self._locates = np.array([0, *(each.locate for each in instruments)], np.uint32)
        self._names = pa.array(["", *(each.symbol for each in instruments)], pa.string())
        self._writer = _writer(path, form, self._schema)

    def write(self, events: Events) -> None:
        self._writer.write_batch(self._batch(events))

    def close(self) -> None:
        self._writer.close()

    def _batch(self, events: Events) -> Any:
        pa = self._pa
        columns = []
        for field in self._schema:
            name = field.name
            if name == "symbol":
                column = self._symbols(events["locate"])
            elif name in ("type", "side"):
                column = pa.array(_letters(events[name]), pa.string())
            elif name == "aux":
                column = pa.array([_text(row) for row in events["aux"]], pa.string())
            else:
                column = pa.array(np.ascontiguousarray(events[name]), field.type)
            columns.append(column)
        return pa.record_batch(columns, schema=self._schema)

    def _symbols(self, locates: Any) -> Any:
        at = np.searchsorted(self._locates, locates)
        known = self._locates[np.minimum(at, len(self._locates) - 1)] == locates
        codes = np.where(known, at, 0).astype(np.int32)  # 0 is no stock, and whatever has no symbol
        coded = self._pa.DictionaryArray.from_arrays(codes, self._names)
        return coded.cast(self._pa.string()) if self._plain else coded


#: The columns of a table of events, in order.
COLUMNS: Final = (
    "seq", "ts", "symbol", "type", "side", "price", "qty", "ref", "ref2", "locate", "flags", "aux",
)  # fmt: skip


def _letters(codes: Any) -> list[str]:
    return [chr(code) if code else "" for code in codes.tolist()]


def _text(row: Any) -> str:
    return str(row.tobytes().rstrip(_PAD).decode("ascii", "backslashreplace"))


def _writer(path: Path, form: Format, schema: Any) -> Any:
    if form is Format.PARQUET:
        import pyarrow.parquet as pq

        return pq.ParquetWriter(path, schema, compression="zstd")
    if form is Format.ARROW:
        import pyarrow as pa

        return pa.ipc.new_file(path, schema)
    from pyarrow import csv

    return csv.CSVWriter(path, schema)


def watched(
    parts: Iterable[Events], last_seq: int, tell: Callable[[int, int, int], None]
) -> Iterator[Events]:
    """The same events; `tell` is given (seq reached, last seq, events so far)."""
    count = 0
    for events in parts:
        yield events
        count += len(events)
        tell(int(events["seq"][-1]), last_seq, count)
