"""Blocks in RocksDB, through rocksdict."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rocksdict import AccessType, DBCompressionType, Options, Rdict, WriteBatch, WriteOptions

from trident_store.blocks.engine import EngineError, guarded
from trident_store.blocks.format import key_of
from trident_store.blocks.store import BlockStore

_NAME: Final = "rocksdb"
_MIN_BLOB_BYTES: Final = 1_024


def _options() -> Options:
    """Values apart from the keys (blob files): events are written to a log and to a blob, never again."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_enable_blob_files(True)
    options.set_min_blob_size(_MIN_BLOB_BYTES)
    options.set_blob_compression_type(DBCompressionType.lz4())
    options.set_paranoid_checks(True)
    options.set_max_open_files(-1)  # a reader opens all tables at once: later the writer may remove them
    return options


class _RocksView:
    hint = 0

    def __init__(self, database: Rdict, torn: tuple[int, str] = (0, "")) -> None:
        self._database = database
        self.torn = torn

    def get(self, number: int) -> bytes | None:
        # Point reads raise what is wrong. An iterator of rocksdict just ends, unless its status is asked.
        with guarded("RocksDB"):
            value: bytes | None = self._database.get(key_of(number))
            return value

    def place(self, number: int) -> tuple[str, int]:
        return _NAME, 0

    def check(self) -> list[EngineError]:
        return []

    def close(self) -> None:
        with guarded("RocksDB"):
            self._database.close()


class _RocksWriter(_RocksView):
    def __init__(self, database: Rdict) -> None:
        super().__init__(database)
        self._durably = WriteOptions()
        self._durably.sync = True

    def commit(self, first: int, blocks: Sequence[bytes]) -> None:
        batch = WriteBatch(raw_mode=True)
        for number, block in enumerate(blocks, first):
            batch.put(key_of(number), block)
        with guarded("RocksDB"):
            self._database.write(batch, self._durably)


class RocksEngine:
    """See `trident_store.blocks.engine.Engine`."""

    name = _NAME

    def create(self, folder: Path) -> _RocksWriter:
        folder.mkdir()
        return self.write(folder, 0)

    def write(self, folder: Path, hint: int) -> _RocksWriter:
        options, notes = _options(), tempfile.mkdtemp(prefix="trident-rocksdb-")
        options.set_db_log_dir(notes)  # what it writes of its own doings is no part of a store
        try:
            with guarded("RocksDB", _NAME):
                writer = _RocksWriter(Rdict(str(folder), options, access_type=AccessType.read_write()))
        except BaseException:
            shutil.rmtree(notes, ignore_errors=True)
            raise
        weakref.finalize(writer, shutil.rmtree, notes, ignore_errors=True)
        return writer

    def view(self, folder: Path, hint: int) -> _RocksView:
        """Opened in a folder of links: rocksdict writes a file of its own even where it only reads."""
        shadow = Path(tempfile.mkdtemp(prefix="trident-rocksdb-"))
        try:
            for name in os.listdir(folder):
                if name.endswith(("LOCK", ".json")):
                    continue
                (shadow / name).symlink_to((folder / name).absolute())
            with guarded("RocksDB", _NAME):
                database = Rdict(str(shadow), _options(), access_type=AccessType.read_only())
        except BaseException:
            shutil.rmtree(shadow, ignore_errors=True)
            raise
        view = _RocksView(database)
        weakref.finalize(view, shutil.rmtree, shadow, ignore_errors=True)
        return view


class RocksStore(BlockStore):
    """A store on RocksDB. Options and errors: `trident_store.blocks.store.BlockStore`."""

    engine = RocksEngine()
