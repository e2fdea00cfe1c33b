"""Databento's DBN files: a header of metadata, then records. The package databento-dbn reads the header."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from trident_core.contracts import ByteSource, Chunk, FeedOptions
from trident_core.errors import InputError, PluginError
from trident_core.session import Instrument, Session
from trident_core.stats import Anomalies
from trident_feed.chunks import chunk_limit

HINT: Final = "pip install 'trident-core[databento]'"
#: The header's metadata may have this many bytes (8,900 symbols take about 2 MB).
METADATA_BYTES_MAX: Final = 64 << 20
#: Decimals of every price.
PRICE_DECIMALS: Final = 9

_MAGIC: Final = b"DBN"
_PRELUDE_BYTES: Final = 8
_WORD_BYTES: Final = 4
_READ_BYTES: Final = 1 << 20
#: Records of one length that are looked at in one step.
_LOOKED_AT: Final = 1 << 12
#: The record that tells the parser that no more come: four words, a type that DBN does not have.
_END_RECORD: Final = bytes([4, 0xFE, 0, 0]) + bytes(12)
#: Datasets, by the part before the point, whose day is New York's. The day of all others is UTC's.
_NEW_YORK: Final = frozenset(
    {"ARCX", "BATS", "BATY", "DBEQ", "EDGA", "EDGX", "EPRL", "EQUS", "IEXG", "MEMX"}
    | {"OCEA", "OPRA", "XASE", "XBOS", "XCHI", "XCIS", "XNAS", "XNYS", "XPSX"}
)


class DatabentoFeed:
    """The records of a DBN file as they are; protocol "dbn-mbo".

    From the metadata come the session's venue, time zone, directory (locate: the instrument's id) and, unless
    it is known, its date; prices have 9 decimals. Chunks hold whole records; one that the end of the input
    cuts counts `torn_tail`. A record of type 0xFE comes last. Raises InputError for schemas other than mbo,
    and for metadata that cannot be read; PluginError if databento-dbn is not installed. Memory: the metadata,
    and one chunk. `lenient` changes nothing.
    """

    protocol = "dbn-mbo"

    def __init__(self, source: ByteSource, session: Session, options: FeedOptions) -> None:
        self.anomalies = Anomalies()
        self._source, self._session = source, session
        self._chunk_bytes = chunk_limit(options)
        session.price_decimals = PRICE_DECIMALS

    @classmethod
    def detect(cls, head: bytes, name: str) -> int:
        """By the magic and a version. See `contracts.Feed`."""
        return 95 if head[:3] == _MAGIC and len(head) > 3 and 1 <= head[3] <= 9 else 0

    def __iter__(self) -> Iterator[Chunk]:
        offset = self._read_metadata()
        data = b""  # the start of a record that is not whole yet
        while more := self._source.read(max(1, self._chunk_bytes - len(data))):
            data += more
            used = _whole_records(data)
            if used:
                yield Chunk(np.frombuffer(data[:used], np.uint8), None, offset)
                offset += used
                data = data[used:]
        if data:
            self.anomalies.add("torn_tail", at=offset)
        yield Chunk(np.frombuffer(_END_RECORD, np.uint8), None, offset + len(data))

    def _read_metadata(self) -> int:
        """Fill the session; -> where the records begin."""
        name = self._source.name
        try:
            import databento_dbn
        except ImportError as error:
            raise PluginError(
                f"{name} is a DBN file, and the package databento-dbn cannot be imported: {error}", hint=HINT
            ) from error
        prelude = self._exactly(_PRELUDE_BYTES)
        size = int.from_bytes(prelude[4:], "little")
        if prelude[:3] != _MAGIC or size > METADATA_BYTES_MAX:
            raise InputError(f"{name} has no DBN header", hint="fragments without metadata cannot be read")
        try:
            metadata = databento_dbn.Metadata.decode(prelude + self._exactly(size))
        except InputError:
            raise
        except Exception as error:  # the package raises what it likes
            raise InputError(
                f"the metadata of {name} (DBN version {prelude[3]}) cannot be read: {error}",
                hint="a newer databento-dbn may know this version",
            ) from error
        schema = str(metadata.schema) if metadata.schema is not None else "mbo"
        if schema != "mbo":
            raise InputError(
                f"{name} holds the schema {schema}, which has no orders to build books from",
                hint="ask Databento for the schema mbo",
            )
        _describe(self._session, metadata)
        return _PRELUDE_BYTES + size

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            more = self._source.read(min(size - len(data), _READ_BYTES))
            if not more:
                raise InputError(f"{self._source.name} ends inside its DBN header", hint="is it whole?")
            data += more
        return bytes(data)


def _describe(session: Session, metadata: Any) -> None:
    """What the metadata says of the session."""
    session.venue = str(metadata.dataset).partition(".")[0]
    session.tz = "America/New_York" if session.venue in _NEW_YORK else "UTC"
    if session.date is None:
        seconds = int(metadata.start) // 1_000_000_000
        session.date = dt.datetime.fromtimestamp(seconds, dt.UTC).date()
    for symbol, intervals in metadata.mappings.items():
        for interval in intervals:
            first, end, other = interval["start_date"], interval["end_date"], str(interval["symbol"])
            if not first <= session.date < max(end, first + dt.timedelta(days=1)):
                continue
            for locate, name in ((other, symbol), (symbol, other)):
                if locate.isdigit() and int(locate) < 1 << 32:
                    session.directory.put(Instrument(int(locate), name))
                    break


def _whole_records(data: bytes) -> int:
    """Bytes of `data` that are whole records; all where one has no length, for the parser to refuse."""
    view = np.frombuffer(data, np.uint8)
    at = 0
    while at < len(data):
        length = data[at] * _WORD_BYTES
        if not length:
            return len(data)
        alike = view[at : at + length * _LOOKED_AT : length]
        others = np.flatnonzero(alike != data[at])
        whole = min(int(others[0]) if len(others) else len(alike), (len(data) - at) // length)
        at += length * whole
        if not whole:
            break
    return at
