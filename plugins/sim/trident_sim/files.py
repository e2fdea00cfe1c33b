"""A simulated day as a file: raw, .gz or .zst, complete or not there at all."""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from trident_core.dtypes import Frames
from trident_core.errors import UsageError
from trident_sim.spec import SimSpec
from trident_sim.stream import Day, warm

#: Called after each batch with the messages written so far and in all.
Progress = Callable[[int, int], None]

_GZIP_LEVEL: Final = 3
_ZSTD_LEVEL: Final = 3
_REFUSED: Final = {".bz2", ".xz", ".zip", ".lz4", ".pcap", ".pcapng"}


@dataclass(frozen=True, slots=True)
class Written:
    """What `write_day` wrote. `bytes` before compression; `seconds` from the first batch to the rename."""

    path: str
    file_bytes: int
    bytes: int
    messages: int
    symbols: int
    seed: int
    date: str | None
    counts: dict[str, int]
    live_orders: int
    live_orders_peak: int
    anomalies: dict[str, int]
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"messages_per_second": int(self.messages / max(self.seconds, 1e-9))}


def write_day(path: Path, spec: SimSpec, *, force: bool = False, progress: Progress | None = None) -> Written:
    """Simulate `spec` into the file `path`; its suffix .gz or .zst says how it is compressed.

    The file appears under its name only when it is complete. Raises UsageError when the path exists (unless
    `force`) or is a folder, when its folder is missing, for the suffix of another format, and when writing
    fails.
    """
    path = Path(path)
    check_path(path, force)
    day = Day(spec)
    warm()  # so that `seconds` never holds a compilation
    started = time.perf_counter()

    def advance() -> None:
        if progress:
            progress(int(day.counts.sum()), spec.messages)

    size = write_frames(path, day.frames(), advance)
    return Written(
        path=str(path),
        file_bytes=path.stat().st_size,
        bytes=size,
        messages=int(day.counts.sum()),
        symbols=spec.symbols,
        seed=spec.seed,
        date=spec.date.isoformat() if spec.date else None,
        counts={chr(letter): int(n) for letter, n in enumerate(day.counts) if n},
        live_orders=day.live,
        live_orders_peak=day.live_peak,
        anomalies=day.anomaly_counts(),
        seconds=round(time.perf_counter() - started, 3),
    )


def write_frames(path: Path, chunks: Iterable[Frames], advance: Callable[[], None]) -> int:
    """Write chunks to the file `path`, which appears when it is complete; return their bytes. `advance` is
    called after each chunk. Raises UsageError when writing fails."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    size = 0
    try:
        with _sink(partial, path.suffix) as write:
            for frames in chunks:
                write(frames)
                size += len(frames)
                advance()
        partial.replace(path)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        partial.unlink(missing_ok=True)
    return size


def check_path(path: Path, force: bool) -> None:
    """Raise UsageError for a path that a day cannot be written to."""
    if path.suffix in _REFUSED:
        raise UsageError(
            f"a simulated day is not written as {path.suffix}", hint="use .gz, .zst, or another name for raw"
        )
    if path.is_dir():
        raise UsageError(
            f"{path} is a folder", hint=f"name a file in it: {path / 'simulated.NASDAQ_ITCH50.gz'}"
        )
    if not path.parent.is_dir():
        raise UsageError(f"there is no folder {path.parent}", hint=f"make it first: mkdir -p {path.parent}")
    if path.exists() and not force:
        raise UsageError(f"{path} exists already", hint="choose another name, or replace it with --force")


@contextmanager
def _sink(path: Path, suffix: str) -> Iterator[Callable[[Any], Any]]:
    """A function that writes bytes to `path`, compressed as `suffix` says. Equal days give equal files."""
    with path.open("wb") as file:
        if suffix == ".gz":
            with gzip.GzipFile("", "wb", _GZIP_LEVEL, cast(BinaryIO, file), mtime=0) as packed:
                yield packed.write
        elif suffix == ".zst":
            import zstandard

            with zstandard.ZstdCompressor(level=_ZSTD_LEVEL).stream_writer(file, closefd=False) as writer:
                yield writer.write
        else:
            yield file.write
