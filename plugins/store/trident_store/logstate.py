"""Where the writer of a log is."""

from __future__ import annotations

from typing import NamedTuple

from trident_core.session import Instrument
from trident_store.filesystem import Buffer
from trident_store.format import Position
from trident_store.found import Extent


class Log(NamedTuple):
    """Where the writer is. Replaced as a whole, so that an interrupt never leaves half a change."""

    handle: int  # of the segment being written
    end: Position
    sealed: tuple[Extent, ...] = ()  # the segments before it


class Pending(NamedTuple):
    """A frame that is being written. Writing it again changes nothing, so an interrupted write is redone."""

    data: Buffer
    offset: int
    end: Position
    instruments: tuple[Instrument, ...]
