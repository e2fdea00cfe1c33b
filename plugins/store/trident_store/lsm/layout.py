"""The bytes of tables and manifests, version 1.1: docs/store-format.md in code. Everything is little-endian.

A table is a header, its events in blocks, sections that index them, a session, and a footer that says where
everything stands. Inside a block the events stand column by column: of n events, column c begins at n times
the column's offset in EVENT.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT

TABLE_MAGIC: Final = b"TRIDTABL"
FOOTER_MAGIC: Final = b"TRIDTABF"
MANIFEST_MAGIC: Final = b"TRIDMANI"
LOG_MAGIC: Final = b"TRIDLOGS"
JOB_MAGIC: Final = b"TRIDJOBS"

MINOR: Final = 1  # of the format, in every record of a store that has tables
HEADER_BYTES: Final = 64
FOOTER_BYTES: Final = 512
MAX_TABLE_EVENTS: Final = 1 << 31
MANIFEST_BYTES: Final = 1 << 20  # a manifest that has grown beyond is replaced

COLUMNS: Final[tuple[str, ...]] = EVENT.names or ()
#: Where a column begins in a block, per event of the block; and its width.
COLUMN_OFFSETS: Final = np.array([EVENT.fields[name][1] for name in COLUMNS], np.int64)  # type: ignore[index]
COLUMN_BYTES: Final = np.array([EVENT[name].itemsize for name in COLUMNS], np.int64)


class Shape(NamedTuple):
    """How finely a table is cut: events in a block, ordinals in a window, references in a page."""

    block_events: int = 2_048
    window_events: int = 4_096
    page_refs: int = 512


class Section(IntEnum):
    """The parts of a table, in the order in which they stand in the file."""

    BLOCKS = 0  # the events; each column of each block has its CRC in BLOCK_INFO
    BLOCK_INFO = 1  # BLOCK for each block
    RUNS = 2  # RUN for each locate, ascending
    SEQ_INDEX = 3  # u32 for each event in append order: its position; CRCs in WINDOWS
    WINDOWS = 4  # WINDOW for each `window_events` of SEQ_INDEX
    REFS = 5  # u64, ascending: the references that events name; CRCs in PAGES
    REF_POSITIONS = 6  # u32 for each of REFS: the position of the event; CRCs in PAGES
    PAGES = 7  # PAGE for each `page_refs` of REFS
    BLOOM = 8  # blocked Bloom filter over REFS: blocks of eight u64
    SESSION = 9  # JSON: the session and its whole directory behind the last event


#: The sections that are checked whole when a table is opened; the others piece by piece when they are read.
CHECKED_AT_OPENING: Final = (
    Section.BLOCK_INFO, Section.RUNS, Section.WINDOWS, Section.PAGES, Section.BLOOM, Section.SESSION,
)  # fmt: skip

#: A block: the least and greatest of some columns, and the CRC of each column.
BLOCK: Final = np.dtype(
    {
        "names": ["min_seq", "max_seq", "min_ts", "max_ts", "min_price", "max_price", "min_locate",
                  "max_locate", "crc", "zero"],
        "formats": ["<u8", "<u8", "<u8", "<u8", "<i8", "<i8", "<u4", "<u4", ("<u4", (11,)), ("u1", (28,))],
        "offsets": [0, 8, 16, 24, 32, 40, 48, 52, 56, 100],
        "itemsize": 128,
    }
)  # fmt: skip

#: The events of one locate: positions from `start` to the next run's.
RUN: Final = np.dtype([("locate", "<u4"), ("start", "<u4")])

#: Consecutive events in append order, and the CRC of their part of SEQ_INDEX.
WINDOW: Final = np.dtype(
    [("first_seq", "<u8"), ("min_ts", "<u8"), ("max_ts", "<u8"), ("crc", "<u4"), ("zero", "<u4")]
)

#: Consecutive references, and the CRCs of their parts of REFS and REF_POSITIONS.
PAGE: Final = np.dtype([("first_ref", "<u8"), ("refs_crc", "<u4"), ("positions_crc", "<u4")])

SECTION: Final = np.dtype([("offset", "<u8"), ("nbytes", "<u8"), ("crc", "<u4"), ("zero", "<u4")])

#: The last bytes of a table: all that is needed to read it, and to rebuild a manifest.
FOOTER: Final = np.dtype(
    {
        "names": [
            "magic", "major", "minor", "table", "store_id", "first_ordinal", "count", "first_seq", "last_seq",
            "min_ts", "max_ts", "min_ref", "max_ref", "level", "epoch", "block_events", "window_events",
            "page_refs", "locates", "refs", "log_segment", "zero", "log_offset", "sections", "rest", "crc",
        ],
        "formats": [
            "S8", "<u2", "<u2", "<u4", ("u1", (16,)), "<u8", "<u8", "<u8", "<u8",
            "<u8", "<u8", "<u8", "<u8", "<u4", "<u4", "<u4", "<u4",
            "<u4", "<u4", "<u8", "<u4", "<u4", "<u8", (SECTION, (10,)), ("u1", (124,)), "<u4",
        ],
        "offsets": [
            0, 8, 10, 12, 16, 32, 40, 48, 56, 64, 72, 80, 88, 96, 100, 104, 108, 112, 116, 120, 128, 132, 136,
            144, 384, 508,
        ],
        "itemsize": FOOTER_BYTES,
    }
)  # fmt: skip

#: A table as a manifest names it.
ENTRY: Final = np.dtype(
    [
        ("table", "<u4"), ("level", "<u4"), ("epoch", "<u4"), ("footer_crc", "<u4"), ("first_ordinal", "<u8"),
        ("count", "<u8"), ("first_seq", "<u8"), ("last_seq", "<u8"), ("nbytes", "<u8"), ("zero", "<u8"),
    ]
)  # fmt: skip

#: What a compaction's job says of the table it makes, before its inputs (ENTRY each).
PLAN: Final = np.dtype(
    [("block_events", "<u4"), ("window_events", "<u4"), ("page_refs", "<u4"), ("zero", "u1", (52,))]
)

#: Bits of the filter for each entry of REFS, of which most references have two or more. A reference sets one
#: bit in each of the eight words of a block.
BLOOM_BITS: Final = 8
BLOOM_SALTS: Final = np.array(
    [0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D, 0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31],
    np.uint64,
)  # those of Parquet's split block filter
_MIX: Final = (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53))  # MurmurHash3's finalizer


def bloom_places(refs: NDArray[np.uint64], blocks: int) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """(block u64[n], masks u64[n, 8]): where each reference has its eight bits."""
    shift = np.uint64(33)
    mixed = refs ^ (refs >> shift)
    mixed *= _MIX[0]
    mixed ^= mixed >> shift
    mixed *= _MIX[1]
    mixed ^= mixed >> shift
    block = ((mixed >> np.uint64(32)) * np.uint64(blocks)) >> np.uint64(32)
    low = mixed & np.uint64(0xFFFFFFFF)
    bits = ((low[:, None] * BLOOM_SALTS) & np.uint64(0xFFFFFFFF)) >> np.uint64(26)
    return block, np.uint64(1) << bits


def bloom_blocks(refs: int) -> int:
    """How many blocks of 512 bits a filter over so many references has."""
    return max(-(-refs * BLOOM_BITS // 512), 1)


def pieces(count: int, size: int) -> int:
    """How many pieces of `size` there are in `count`, the last one perhaps smaller."""
    return -(-count // size)


def section_bytes(section: Section, footer: Any) -> int:
    """What a section holds, before it is filled up to a multiple of 64 (SESSION: as it stands)."""
    count, refs = int(footer["count"]), int(footer["refs"])
    sizes = {
        Section.BLOCKS: count * EVENT.itemsize,
        Section.BLOCK_INFO: pieces(count, int(footer["block_events"])) * BLOCK.itemsize,
        Section.RUNS: int(footer["locates"]) * RUN.itemsize,
        Section.SEQ_INDEX: count * 4,
        Section.WINDOWS: pieces(count, int(footer["window_events"])) * WINDOW.itemsize,
        Section.REFS: refs * 8,
        Section.REF_POSITIONS: refs * 4,
        Section.PAGES: pieces(refs, int(footer["page_refs"])) * PAGE.itemsize,
        Section.BLOOM: bloom_blocks(refs) * 64,
    }
    return sizes.get(section, int(footer["sections"][section]["nbytes"]))


def table_name(number: int) -> str:
    return f"{number:08d}.tab"


def manifest_name(number: int) -> str:
    return f"{number:08d}.man"


def job_name(number: int) -> str:
    """Of the compaction that makes the table of this number."""
    return f"{number:08d}.job"


def file_number(name: str, extension: str) -> int | None:
    """The number in the name of a table ("tab"), a manifest ("man") or a job ("job"); None for others."""
    stem, _, found = name.partition(".")
    return int(stem) if found == extension and len(stem) == 8 and stem.isascii() and stem.isdigit() else None


def _check_layouts() -> None:
    """Fail at import when a record is not laid out as the document says."""
    sizes = {"BLOCK": (BLOCK, 128), "RUN": (RUN, 8), "WINDOW": (WINDOW, 32), "PAGE": (PAGE, 16),
             "SECTION": (SECTION, 24), "FOOTER": (FOOTER, 512), "ENTRY": (ENTRY, 64),
             "PLAN": (PLAN, 64)}  # fmt: skip
    for name, (dtype, size) in sizes.items():
        fields: Any = dtype.fields
        end = 0
        for field in dtype.names or ():
            sub, offset = fields[field][:2]
            if offset != end:
                raise ImportError(f"{name}.{field} stands at {offset} instead of {end}")
            end = offset + sub.itemsize
        if not dtype.itemsize == end == size:
            raise ImportError(f"{name} has {dtype.itemsize} bytes instead of {size}")
    if int(COLUMN_BYTES.sum()) != EVENT.itemsize or len(COLUMNS) != 11:
        raise ImportError("the columns of EVENT do not fill it")
    if len(Section) != 10:
        raise ImportError("a footer has room for 10 sections")


_check_layouts()
