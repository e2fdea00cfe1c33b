"""Inputs for feeds: bytes in memory, delivered as any pipe might, and samples of the formats of the project's
own feeds; more come by --sample."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from trident_conformance import streams
from trident_core.stats import Anomalies
from trident_feed import write

#: How much of an input `detect` is shown.
HEAD: Final = 1 << 16


class Memory:
    """A ByteSource over bytes. `delivers`: at most so many bytes a read; `asked` counts reads, peeks."""

    path = None

    def __init__(self, data: bytes, name: str = "sample", delivers: int = 1 << 20) -> None:
        self._data, self._at, self._delivers = data, 0, delivers
        self.name, self.anomalies, self.asked = name, Anomalies(), 0

    def peek(self, n: int) -> bytes:
        self.asked += 1
        return self._data[self._at : self._at + min(n, HEAD)]

    def read(self, n: int) -> bytes:
        self.asked += 1
        data = self._data[self._at : self._at + min(n, self._delivers)]
        self._at += len(data)
        return data

    def progress(self) -> tuple[int, int | None]:
        return self._at, len(self._data)

    def close(self) -> None:
        pass


@cache
def samples() -> Mapping[str, bytes]:
    """name -> bytes: ITCH 5.0 as a day file, in MoldUDP64 captures, in a SoupBinTCP stream; LOBSTER's csv."""
    framed = streams.day_bytes(3, 400, faults=False)
    messages = list(write.split_messages(framed))
    packets = [
        (n * 1_000, write.ethernet(write.udp(payload)))
        for n, payload in enumerate(write.mold_datagrams(messages))
    ]
    soup = b"".join(write.soup_packet("S", message) for message in messages)
    lobster = "".join(
        f"34200.{n:09d},1,{n + 1},100,{5_853_300 + 100 * n},{1 - 2 * (n % 2)}\n" for n in range(300)
    )
    return {
        "day-file": framed,
        "pcap": b"".join(write.pcap(packets)),
        "pcapng": b"".join(write.pcapng(packets)),
        "soup-file": write.soup_login(b"TRIDENT", 1) + soup + write.soup_packet("Z"),
        "lobster": lobster.encode(),
    }


def given(paths: list[str]) -> dict[str, bytes]:
    """The files of --sample, by name. Raises OSError."""
    return {Path(path).name: Path(path).read_bytes() for path in paths}


def known_by(factory: Any, some: Mapping[str, bytes]) -> dict[str, bytes]:
    """Those samples that a feed says it knows."""
    return {name: data for name, data in some.items() if factory.detect(data[:HEAD], name) > 0}
