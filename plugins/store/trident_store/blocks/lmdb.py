"""Blocks in LMDB: written by LMDB, read by `trident_store.blocks.lmdb_file`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import lmdb

from trident_store.blocks.engine import guarded
from trident_store.blocks.format import key_of
from trident_store.blocks.lmdb_file import LmdbFile
from trident_store.blocks.store import BlockStore
from trident_store.filesystem import OsFileSystem

_NAME: Final = "lmdb"
_DATA: Final = "data.mdb"
#: Address space, not memory and not disk: the file grows as it is filled, up to this.
MAP_BYTES: Final = 1 << 40
#: A value of at least this size has pages of its own, which LMDB then never moves.
_OWN_PAGES_BYTES: Final = 4_096


class _LmdbWriter(LmdbFile):
    hint = 0

    def __init__(self, folder: Path) -> None:
        # No lock file: the store has its own lock, and its readers need none.
        with guarded("LMDB", f"{_NAME}/{_DATA}"):
            self._environment = lmdb.open(
                str(folder), map_size=MAP_BYTES, lock=False, max_dbs=0, readahead=False, meminit=True
            )
        try:
            super().__init__(folder / _DATA, f"{_NAME}/{_DATA}")
        except BaseException:
            self._environment.close()
            raise

    def commit(self, first: int, blocks: Sequence[bytes]) -> None:
        with guarded("LMDB", f"{_NAME}/{_DATA}"), self._environment.begin(write=True) as transaction:
            for number, block in enumerate(blocks, first):
                value = block.ljust(_OWN_PAGES_BYTES, b"\0")
                if not transaction.put(key_of(number), value, overwrite=False, append=True):
                    raise lmdb.KeyExistsError(f"block {number} is there already")

    def close(self) -> None:
        super().close()
        with guarded("LMDB"):
            self._environment.close()


class LmdbEngine:
    """See `trident_store.blocks.engine.Engine`."""

    name = _NAME

    def create(self, folder: Path) -> _LmdbWriter:
        folder.mkdir()
        writer = _LmdbWriter(folder)
        OsFileSystem().sync_directory(folder)
        return writer

    def write(self, folder: Path, hint: int) -> _LmdbWriter:
        return _LmdbWriter(folder)

    def view(self, folder: Path, hint: int) -> LmdbFile:
        return LmdbFile(folder / _DATA, f"{_NAME}/{_DATA}")


class LmdbStore(BlockStore):
    """A store on LMDB. Options and errors: `trident_store.blocks.store.BlockStore`."""

    engine = LmdbEngine()
    #: For the crash laboratory: LMDB's meta pages have no checksum, one torn inside a sector is refused.
    whole_sectors = True
