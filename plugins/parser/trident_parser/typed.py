"""Typed rows out of framed bytes, and the checks of arrays that all parsers of this package share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trident_core.dtypes import EVENT, Events, Frames
from trident_core.errors import UsageError
from trident_parser.itch50 import BY_LETTER, TABLE_DTYPES, WIRE_DTYPES, framed_at


def check_frames(frames: Frames) -> None:
    """Raise UsageError unless `frames` is a contiguous u8[n]."""
    if (
        not isinstance(frames, np.ndarray)
        or frames.dtype != np.uint8
        or frames.ndim != 1
        or not frames.flags.c_contiguous
    ):
        raise UsageError("frames must be a contiguous u8[n]")


def check_out(out: Events) -> None:
    """Raise UsageError unless `out` is a writable, contiguous EVENT[m], m >= 1."""
    if (
        not isinstance(out, np.ndarray)
        or out.dtype != EVENT
        or out.ndim != 1
        or not out.flags.c_contiguous
        or not out.flags.writeable
    ):
        raise UsageError("parse_into needs a writable, contiguous EVENT[m] to write to")
    if len(out) == 0:
        raise UsageError("parse_into needs room for at least one event")


def typed_rows(frames: Frames, letter: str, seqs: Any, starts: Any) -> NDArray[Any]:
    """The messages of one type whose frames start at `starts`, numbered `seqs`, as TABLE_DTYPES[letter]."""
    wire = framed_at(frames, letter)[np.asarray(starts)].view(WIRE_DTYPES[letter])
    rows = np.empty(len(wire), TABLE_DTYPES[letter])
    rows["seq"] = seqs
    for field in BY_LETTER[letter].fields[1:]:
        if field.size == 6:
            high = wire["timestamp_high"].astype(np.uint64)
            rows[field.name] = high << np.uint64(32) | wire["timestamp_low"]
        else:
            rows[field.name] = wire[field.name]
    return rows
