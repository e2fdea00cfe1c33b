"""Sources: every way to the same bytes, and what goes wrong on the way."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import itertools
import lzma
import os
import struct
import subprocess
import sys
import threading
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core.decompress import RAW_BLOCK, STEP_OUT
from trident_core.errors import InputError, UsageError
from trident_core.source import PEEK_MAX, READ_MAX, Source, open_source

PLAIN = b"".join(zlib.crc32(bytes([n & 255, n >> 8])).to_bytes(4, "big") * (n % 7) for n in range(20_000))


def zstd(data: bytes, **options: bool) -> bytes:
    return zstandard.ZstdCompressor(**options).compress(data)


def skippable(size: int, low: int = 0x53) -> bytes:
    return struct.pack("<II", 0x184D2A00 | low, size) + bytes(size)


HALF = len(PLAIN) // 2
#: name -> members, padding and skippable frames, in order.
PARTS = {
    "raw": [PLAIN],
    "gzip": [gzip.compress(PLAIN)],
    "gzip, many members, an empty one": [
        gzip.compress(part) for part in (PLAIN[:1], b"", PLAIN[1:HALF], PLAIN[HALF:])
    ],
    "gzip, zero padding": [gzip.compress(PLAIN), bytes(100_000)],
    "gzip, padding between members": [gzip.compress(PLAIN[:HALF]), bytes(512), gzip.compress(PLAIN[HALF:])],
    "zstd": [zstd(PLAIN)],
    "zstd, checksum, no content size": [zstd(PLAIN, write_checksum=True, write_content_size=False)],
    "zstd, many frames, some to skip": [
        skippable(70_000),
        zstd(PLAIN[:HALF]),
        skippable(0, 0x5F),
        zstd(b""),
        zstd(PLAIN[HALF:], write_checksum=True),
        skippable(3),
    ],
    "bzip2": [bz2.compress(PLAIN)],
    "bzip2, many streams": [bz2.compress(PLAIN[:HALF]), bz2.compress(PLAIN[HALF:])],
    "xz": [lzma.compress(PLAIN)],
    "xz, many streams, padding": [lzma.compress(PLAIN[:HALF]), bytes(8), lzma.compress(PLAIN[HALF:])],
}
PACKED = {name: b"".join(parts) for name, parts in PARTS.items()}
COMPRESSED = {name: data for name, data in PACKED.items() if name != "raw"}


def unpack(source: Source, n: int = 1 << 20) -> bytes:
    pieces = []
    while piece := source.read(n):
        assert len(piece) <= n
        pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("n", [1 << 20, 4096, 1013])
def test_every_container_gives_the_same_bytes(name: str, n: int, tmp_path: Path) -> None:
    """FEED-10."""
    path = tmp_path / "named.misleadingly.bz2"
    path.write_bytes(PACKED[name])
    with open_source(path) as source:
        assert source.peek(10) == PLAIN[:10]
        assert source.peek(PEEK_MAX) == source.peek(1 << 30) == PLAIN[:PEEK_MAX]
        assert unpack(source, n) == PLAIN
        assert source.read(n) == source.peek(5) == b""
        assert source.progress() == (len(PACKED[name]), len(PACKED[name]))
        assert (source.name, source.path) == (str(path), path)
        assert not source.anomalies


@pytest.mark.parametrize("name", ["raw", "gzip", "zstd, many frames, some to skip"])
def test_a_fifo_is_read_as_a_file_is(name: str, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(PACKED[name]))
    writer.start()
    with open_source(fifo) as source:
        assert unpack(source) == PLAIN
        assert source.progress() == (len(PACKED[name]), None)
    writer.join()


_COUNT_STDIN = """
import hashlib, sys
from trident_core.source import open_source
source = open_source("-")
digest = hashlib.sha256()
while data := source.read(1 << 16):
    digest.update(data)
print(digest.hexdigest(), source.name, source.path, source.progress())
"""


@pytest.mark.parametrize("piped", [True, False])
def test_standard_input(piped: bool, tmp_path: Path) -> None:
    packed = PACKED["gzip"]
    (tmp_path / "file").write_bytes(packed)
    with open(tmp_path / "file", "rb") as file:
        feed = {"input": packed} if piped else {"stdin": file}
        ran = subprocess.run([sys.executable, "-c", _COUNT_STDIN], capture_output=True, check=True, **feed)
    total = None if piped else len(packed)
    digest = hashlib.sha256(PLAIN).hexdigest()
    assert ran.stdout.decode().strip() == f"{digest} standard input None {(len(packed), total)}"


def test_standard_input_replaced_by_a_test_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PACKED["gzip"])))
    source = open_source("-")
    assert unpack(source) == PLAIN
    source.close()
    assert not sys.stdin.closed


def test_no_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(InputError, match="no standard input"):
        open_source("-")


@pytest.mark.parametrize("packed", [PLAIN, gzip.compress(PLAIN * 8)])
def test_progress_grows_with_what_is_read(packed: bytes, tmp_path: Path) -> None:
    """FEED-15."""
    path = tmp_path / "file"
    path.write_bytes(packed)
    with open_source(path) as source:
        seen = [source.progress()[0]]
        while source.read(1 << 15):
            seen.append(source.progress()[0])
    assert seen == sorted(seen)
    assert seen[-1] == len(packed)
    assert len(set(seen)) > 5
    if packed is PLAIN:
        assert seen[:3] == [0, 1 << 15, 1 << 16], "what was only peeked at is not consumed"


# --- Cut and damaged streams --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMPRESSED)
def test_a_cut_stream_gives_a_prefix_and_is_counted(name: str) -> None:
    """FEED-13."""
    packed = COMPRESSED[name]
    ends = set(itertools.accumulate(len(part) for part in PARTS[name]))
    near_ends = {cut for end in ends for cut in range(end - 9, end + 9)}
    for cut in sorted({*range(6, 60), *range(60, len(packed), 2999), *near_ends} & set(range(len(packed)))):
        source = Source(io.BytesIO(packed[:cut]), "cut")
        out = unpack(source)
        assert PLAIN.startswith(out)
        in_padding = any(
            end - len(part) <= cut <= end and not part.strip(b"\0")
            for part, end in zip(PARTS[name], itertools.accumulate(map(len, PARTS[name])), strict=True)
        )
        assert source.anomalies.count("truncated_stream") == (cut not in ends and not in_padding), cut
        assert set(source.anomalies) <= {"truncated_stream"}


@pytest.mark.parametrize("name", ["gzip", "zstd, checksum, no content size", "bzip2", "xz"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_damaged_stream_stops_is_counted_and_does_not_depend_on_the_reads(
    name: str, data: st.DataObject
) -> None:
    """FEED-13."""
    packed = bytearray(COMPRESSED[name])
    at = data.draw(st.integers(12, len(packed) - 1))
    packed[at] ^= 1 << data.draw(st.integers(0, 7))
    readings = []
    for n in (1 << 20, 5000):
        source = Source(io.BytesIO(bytes(packed)), "damaged")
        out = unpack(source, n)
        readings.append((out, source.anomalies.to_json()))
    assert readings[0] == readings[1]
    out, anomalies = readings[0]
    assert out == PLAIN or anomalies, "wrong bytes are never passed on in silence"


def test_damage_is_counted_with_its_position() -> None:
    packed = bytearray(gzip.compress(os.urandom(1 << 20), 1))
    packed[500_000:500_100] = bytes(100)
    packed[-8:-4] = b"\xff\xff\xff\xff"
    source = Source(io.BytesIO(bytes(packed)), "damaged")
    unpack(source)
    anomaly = source.anomalies["corrupt_stream"]
    assert anomaly.count == 1
    assert anomaly.positions[0] <= len(packed)


def test_bytes_that_are_not_a_member_end_the_stream() -> None:
    """FEED-13."""
    packed = gzip.compress(PLAIN) + bytes(7) + b"not a member"
    source = Source(io.BytesIO(packed), "with a tail")
    assert unpack(source) == PLAIN
    assert source.anomalies.to_json() == {
        "trailing_bytes": {"count": 1, "first_at": [len(packed) - len(b"not a member")]}
    }


# --- Bounds -------------------------------------------------------------------------------------------------


def _bombs() -> dict[str, bytes]:
    size = 1 << 28
    deflate = zlib.compressobj(9, wbits=31)
    gz = b"".join(deflate.compress(bytes(1 << 24)) for _ in range(size >> 24)) + deflate.flush()
    return {"gzip": gz, "zstd": zstd(bytes(size)), "xz": lzma.compress(bytes(size), preset=0)}


@pytest.mark.slow
def test_bombs_are_unpacked_in_bounded_memory() -> None:
    """FEED-8."""
    for packed in _bombs().values():
        tracemalloc.start()
        source = Source(io.BytesIO(packed), "bomb")
        total = 0
        while data := source.read(1 << 16):
            total += len(data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert total == 1 << 28
        assert peak < 8 * STEP_OUT


def test_a_small_bomb_in_a_second() -> None:
    deflate = zlib.compressobj(9, wbits=31)
    packed = deflate.compress(bytes(1 << 25)) + deflate.flush()
    tracemalloc.start()
    source = Source(io.BytesIO(packed), "bomb")
    assert sum(iter(lambda: len(source.read(100_000)), 0)) == 1 << 25
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * STEP_OUT


def test_a_window_larger_than_the_limit_is_refused() -> None:
    # A frame header that asks for a window of 2 GiB, then a raw last block of one byte.
    packed = b"\x28\xb5\x2f\xfd" + bytes([0x00, 21 << 3]) + (1 | 1 << 3).to_bytes(3, "little") + b"x"
    source = Source(io.BytesIO(packed), "wide")
    assert unpack(source) == b""
    assert source.anomalies.count("corrupt_stream") == 1


def test_one_read_is_bounded_whatever_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with open(path, "wb") as file:
        file.write(b"x")
        file.truncate(READ_MAX * 3)
    with open_source(path) as source:
        source.read(PEEK_MAX)
        assert len(source.read(1 << 60)) <= READ_MAX
        with pytest.raises(UsageError):
            source.read(0)


def test_raw_blocks_do_not_depend_on_how_a_pipe_delivers() -> None:
    class Dribble(io.RawIOBase):
        def __init__(self) -> None:
            self.data = io.BytesIO(PACKED["gzip"][:-5000])

        def read(self, n: int = -1) -> bytes:
            return self.data.read(min(n, 777))

    slow = Source(Dribble(), "slow")  # type: ignore[arg-type]
    fast = Source(io.BytesIO(PACKED["gzip"][:-5000]), "fast")
    assert unpack(slow) == unpack(fast)
    assert slow.anomalies.to_json() == fast.anomalies.to_json()
    assert RAW_BLOCK % 777


def test_real_bytes_through_every_container(shared: Callable[..., Path], tmp_path: Path) -> None:
    plain = shared("data", "itch50_runk", "locate-13-10k.bin").read_bytes()
    half = len(plain) // 2 + 1
    for number, packed in enumerate(
        [
            plain,
            gzip.compress(plain),
            gzip.compress(plain[:half]) + gzip.compress(plain[half:]),
            zstd(plain[:half]) + zstd(plain[half:]),
            bz2.compress(plain),
            lzma.compress(plain),
        ]
    ):
        path = tmp_path / str(number)
        path.write_bytes(packed)
        with open_source(path) as source:
            assert unpack(source) == plain
