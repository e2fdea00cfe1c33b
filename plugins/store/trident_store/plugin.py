"""The entry point: which stores this package has."""

from __future__ import annotations

from typing import Final

from trident_core.contracts import Capability, CommandSpec, EngineSpec, Kind
from trident_core.hookspecs import hookimpl

#: Names in a store of the portable format; any of them is left when the others are lost.
PORTABLE_FILES: Final = ("[0-9]*.seg", "[0-9]*.tab", "[0-9]*.man")


@hookimpl
def trident_register_stores() -> list[EngineSpec]:
    return [
        EngineSpec(
            kind=Kind.STORE,
            name="reference",
            factory="trident_store.reference:ReferenceStore",
            summary="CRC32C-framed groups in segments, in plain Python",
            capabilities=frozenset({Capability.PORTABLE_FORMAT, Capability.FILESYSTEM}),
            files=PORTABLE_FILES,
        ),
        EngineSpec(
            kind=Kind.STORE,
            name="lsm",
            factory="trident_store.lsm.engine:LsmStore",
            summary="the same log with group commit, moved to sorted, indexed tables in the background",
            capabilities=frozenset({Capability.PORTABLE_FORMAT, Capability.FILESYSTEM}),
            files=PORTABLE_FILES,
        ),
        EngineSpec(
            kind=Kind.STORE,
            name="rocksdb",
            factory="trident_store.blocks.rocksdb:RocksStore",
            summary="blocks of events in RocksDB, checked and chained",
            requires=("rocksdict",),
            install_hint="pip install 'trident-core[rocksdb]'",
            files=("rocksdb",),
        ),
        EngineSpec(
            kind=Kind.STORE,
            name="lmdb",
            factory="trident_store.blocks.lmdb:LmdbStore",
            summary="blocks of events in LMDB, checked and chained",
            requires=("lmdb",),
            install_hint="pip install 'trident-core[lmdb]'",
            files=("lmdb",),
        ),
        EngineSpec(
            kind=Kind.STORE,
            name="duckdb",
            factory="trident_store.blocks.duckdb:DuckStore",
            summary="blocks of events in DuckDB, checked and chained",
            requires=("duckdb",),
            install_hint="pip install 'trident-core[duckdb]'",
            files=("duckdb",),
        ),
    ]


_COMMANDS: Final = {
    "recover": "What opening STORE for writing does after a crash: told (--dry-run), or done.",
    "repair": "Put back in STORE what can be proven: manifest, indexes, headers.",
    "salvage": "All events of a damaged STORE that are provably right, into a new store.",
    "stats": "Figures of STORE: levels, bytes, amplification, filters.",
    "compact": "Put the log of STORE into tables and merge what is due, now.",
    "dump": "Any file of a store for people: records, offsets, what checks.",
    "backup": "A checked copy of STORE in a folder of backups, also while it is written.",
    "restore": "A store from a backup, checked before it is there.",
}


@hookimpl
def trident_register_commands() -> list[CommandSpec]:
    return [
        CommandSpec(name=name, target=f"trident_store.commands.{name}:{name}", summary=summary)
        for name, summary in _COMMANDS.items()
    ]
