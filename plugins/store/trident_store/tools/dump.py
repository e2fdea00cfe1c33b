"""Any file of a store for people: records with their offsets, and whether each checks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

from trident_core.errors import StoreError, UsageError
from trident_store.checks import FOLDER_ENGINES
from trident_store.filesystem import OsFileSystem
from trident_store.format import (
    MARK_MAGIC,
    MARK_NAME,
    MARK_SLOT_BYTES,
    RECORD_BYTES,
    FrameKind,
    crc32c,
    decode_frame,
    decode_position,
    minor_of,
    segment_number,
)
from trident_store.lsm.layout import (
    BLOCK,
    COLUMNS,
    ENTRY,
    FOOTER,
    FOOTER_BYTES,
    HEADER_BYTES,
    LOG_MAGIC,
    MANIFEST_MAGIC,
    TABLE_MAGIC,
    Section,
    file_number,
    pieces,
)
from trident_store.tools.frames import Segment, bytes_of
from trident_store.tools.table_parts import TableParts

#: One line of a dump: file, offset, bytes, what, whether it checks (None: has no CRC of its own), its fields.
Row = dict[str, Any]


def dump(path: Path, *, blocks: bool = False) -> Iterator[Row]:
    """The rows of a file, or of every file of a store's folder, in order. `blocks`: of tables each block.

    Raises StoreError when nothing is there, UsageError for a file that is not of a store.
    """
    try:
        names = sorted(each.name for each in path.iterdir()) if path.is_dir() else [path.name]
        folder = path if path.is_dir() else path.parent
        foreign = sorted(set(FOLDER_ENGINES) & {each.name for each in folder.iterdir()})
        if foreign:
            raise UsageError(
                f"{path} is of a store of the engine {foreign[0]}, whose files only its own tools read",
                hint=f"dump is for lsm and reference; try `trident verify {folder} --store {foreign[0]}`",
            )
        known = [name for name in names if _kind(name)]
        if not known:
            what = "has no file of a store" if path.is_dir() else "is no file of a store"
            if not path.exists():
                raise StoreError(f"there is no {path}", hint="is the path right?")
            raise UsageError(f"{path} {what}", hint="segments .seg, tables .tab, manifests .man, durable")
        for name in known:
            yield from _DUMPS[_kind(name)](folder, name, blocks)
    except OSError as error:
        raise StoreError(
            f"cannot read {path}: {error.strerror or error}", hint="is the path right?"
        ) from error


def _kind(name: str) -> str:
    if name == MARK_NAME:
        return "mark"
    if segment_number(name) is not None:
        return "seg"
    return next((kind for kind in ("tab", "man") if file_number(name, kind) is not None), "")


def _row(name: str, offset: int, size: int, what: str, checks: bool | None, **fields: Any) -> Row:
    return {"file": name, "offset": offset, "bytes": size, "what": what, "checks": checks, **fields}


def _position(name: str, offset: int, data: bytes, magic: bytes, what: str) -> tuple[Row, bytes]:
    """A record in the shape of a segment's header: its row, and the store's id if it checks."""
    found = decode_position(magic, data)
    if found is None:
        return _row(name, offset, len(data), what, False), b""
    store_id, at = found
    fields = {"store_id": store_id.hex(), "minor": minor_of(data), **at._asdict()}
    return _row(
        name, offset, RECORD_BYTES, what, True, **{_RENAMED.get(k, k): v for k, v in fields.items()}
    ), store_id


#: A position's offset must not hide the row's own.
_RENAMED: Final = {"offset": "position"}


def _dump_mark(folder: Path, name: str, blocks: bool) -> Iterator[Row]:
    data = bytes_of(OsFileSystem(), folder / name).tobytes()
    for slot in (0, 1):
        at = slot * MARK_SLOT_BYTES
        row, _ = _position(name, at, data[at : at + RECORD_BYTES], MARK_MAGIC, f"slot {slot}")
        row["checks"] = row["checks"] and not any(data[at + RECORD_BYTES : at + MARK_SLOT_BYTES])
        yield row


def _dump_segment(folder: Path, name: str, blocks: bool) -> Iterator[Row]:
    number = segment_number(name)
    assert number is not None
    segment = Segment(OsFileSystem(), folder, number)
    found = segment.header()
    store_id = found[0] if found is not None else _id_of(folder)
    yield _header_of_segment(segment)
    for offset, size, frame in segment.stretches(store_id):
        if frame is None:
            zeros = not segment.data[offset : offset + size].any()
            yield _row(name, offset, size, "zeros" if zeros else "unreadable", None if zeros else False)
            continue
        kind = FrameKind(frame.kind).name.lower() if frame.kind in list(FrameKind) else f"kind {frame.kind}"
        fields = frame._asdict()
        for field in ("kind", "offset", "segment", "payload_bytes"):
            del fields[field]
        fields["payload_crc"] = f"{frame.payload_crc:08x}"
        yield _row(name, offset, size, kind, segment.payload(frame) is not None, **fields)


def _header_of_segment(segment: Segment) -> Row:
    from trident_store.format import SEGMENT_MAGIC

    return _position(segment.name, 0, segment.data[:RECORD_BYTES].tobytes(), SEGMENT_MAGIC, "header")[0]


def _id_of(folder: Path) -> bytes:
    """The store's id by its mark, when a file does not tell itself."""
    from trident_store.mark import read_mark

    return read_mark(OsFileSystem(), folder).store_id


def _dump_manifest(folder: Path, name: str, blocks: bool) -> Iterator[Row]:
    data = bytes_of(OsFileSystem(), folder / name)
    row, store_id = _position(name, 0, data[:HEADER_BYTES].tobytes(), MANIFEST_MAGIC, "header")
    yield row
    store_id, at = store_id or _id_of(folder), HEADER_BYTES
    while at < len(data):
        frame = decode_frame(store_id, data[at : at + RECORD_BYTES].tobytes())
        if frame is None:
            yield _row(name, at, len(data) - at, "unreadable", False)
            return
        payload = data[at + RECORD_BYTES :][: frame.payload_bytes]
        sound = len(payload) == frame.payload_bytes and crc32c(payload) == frame.payload_crc
        size = RECORD_BYTES + frame.payload_bytes
        yield _row(
            name, at, size, "record", sound, tables=frame.count, ordinal=frame.ordinal, epoch=frame.epoch
        )
        if sound:
            yield _position(
                name, at + RECORD_BYTES, payload[:RECORD_BYTES].tobytes(), LOG_MAGIC, "log goes on"
            )[0]
            rows: Any = payload[RECORD_BYTES : RECORD_BYTES + frame.count * ENTRY.itemsize].view(ENTRY)
            for i, entry in enumerate(rows):
                fields: dict[str, Any] = {
                    field: int(entry[field]) for field in ENTRY.names or () if field not in ("zero", "nbytes")
                }
                fields |= {
                    "footer_crc": f"{int(entry['footer_crc']):08x}",
                    "file_bytes": int(entry["nbytes"]),
                }
                yield _row(name, at + 2 * RECORD_BYTES + 64 * i, 64, "table", None, **fields)
        at += size


def _dump_table(folder: Path, name: str, blocks: bool) -> Iterator[Row]:
    number = file_number(name, "tab")
    assert number is not None
    head = bytes_of(OsFileSystem(), folder / name)[:HEADER_BYTES].tobytes()
    row, store_id = _position(name, 0, head, TABLE_MAGIC, "header")
    yield row
    parts = TableParts(OsFileSystem(), folder, number, store_id or _id_of(folder))
    data = parts.data
    if len(data) < HEADER_BYTES + FOOTER_BYTES:
        yield _row(name, HEADER_BYTES, max(len(data) - HEADER_BYTES, 0), "unreadable", False)
        return
    footer: Any = data[-FOOTER_BYTES:].view(FOOTER)[0]
    if parts.footer is not None:
        for section in Section:
            offset, size, crc = (
                int(footer["sections"][section][field]) for field in ("offset", "nbytes", "crc")
            )
            sound = crc32c(data[offset : offset + size]) == crc if crc else None
            yield _row(name, offset, size, section.name.lower(), sound, crc=f"{crc:08x}")
        if blocks:
            yield from _blocks(parts, int(footer["block_events"]))
    fields = {
        field: int(footer[field])
        for field in FOOTER.names or ()
        if field not in ("magic", "store_id", "sections", "rest", "zero", "crc")
    }
    at = len(data) - FOOTER_BYTES
    yield _row(
        name, at, FOOTER_BYTES, "footer", parts.footer is not None, crc=f"{int(footer['crc']):08x}", **fields
    )


def _blocks(parts: TableParts, block_events: int) -> Iterator[Row]:
    """Each block with its zone map."""
    count = parts.count
    start = HEADER_BYTES + count * 64
    info = parts.data[start : start + pieces(count, block_events) * BLOCK.itemsize].view(BLOCK)
    for block, row in enumerate(info):
        rows, base = parts.place(block, block_events, count)
        bad = parts.bad_columns(rows, base, row["crc"])
        zones: dict[str, Any] = {
            field: int(row[field]) for field in BLOCK.names or () if field not in ("crc", "zero")
        }
        if bad:
            zones["bad_columns"] = [COLUMNS[c] for c in bad]
        yield _row(parts.name, base, rows * 64, f"block {block}", not bad, events=rows, **zones)


_DUMPS: Final = {"mark": _dump_mark, "seg": _dump_segment, "man": _dump_manifest, "tab": _dump_table}


def events_at(path: Path, offset: int) -> np.ndarray:
    """The events of the frame or block that stands at `offset` of a file: EVENT[n]; frames in the order of
    appending, blocks in the table's. Raises UsageError when none that checks begins there."""
    for row in dump(path, blocks=True):
        if row["offset"] != offset or not row["checks"]:
            continue
        folder, name = path.parent, path.name
        if row["what"] == "events":
            number = segment_number(name)
            assert number is not None
            segment = Segment(OsFileSystem(), folder, number)
            found = segment.header()
            frame = segment.frame_at(found[0] if found else _id_of(folder), offset)
            events = segment.events(frame) if frame is not None else None
            if events is not None:
                return events
        elif row["what"].startswith("block "):
            number = file_number(name, "tab")
            assert number is not None
            head = bytes_of(OsFileSystem(), path)[:HEADER_BYTES].tobytes()
            decoded = decode_position(TABLE_MAGIC, head)
            parts = TableParts(OsFileSystem(), folder, number, decoded[0] if decoded else _id_of(folder))
            block = int(row["what"].split()[1])
            return parts.block(block, int(parts.footer["block_events"]), parts.count)
    raise UsageError(
        f"no frame and no block of events that checks begins at {offset} of {path}",
        hint="`trident dump FILE --blocks` lists where they begin",
    )
