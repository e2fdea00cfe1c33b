"""The vectors: cases with their expectations, as JSON files that are written and read by people.

A file holds one topic: `kind`, `about`, and `vectors`, each with a `name`, a `reason` (the rule of the
contract, the section of the specification, the trap) and its data. docs/conformance.md describes the fields
of each kind.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import TradingState
from trident_core.dtypes import (
    EFFECT,
    EVENT,
    LEVEL,
    TOP,
    EffectFlag,
    Effects,
    EventFlag,
    Events,
    Levels,
    Outcome,
    TopFlag,
    Tops,
)
from trident_core.session import Instrument, Session

FOLDER: Final = Path(__file__).parent / "vectors"
MANIFEST: Final = FOLDER / "MANIFEST.json"


@dataclass(frozen=True)
class Vector:
    """One case. `data` is its JSON object."""

    topic: str
    kind: str
    name: str
    data: dict[str, Any] = field(repr=False)

    @property
    def label(self) -> str:
        """As in test ids: vector=replace-same-price."""
        return f"vector={self.name}"


def topics() -> list[Path]:
    """The files, by name; the manifest is not one of them."""
    return sorted(path for path in FOLDER.glob("*.json") if path != MANIFEST)


@cache
def load(prefix: str) -> tuple[Vector, ...]:
    """All vectors of the topics whose names start with `prefix`, in file order."""
    found: list[Vector] = []
    for path in topics():
        if path.stem.startswith(prefix):
            data = json.loads(path.read_text(encoding="utf-8"))
            found += [Vector(path.stem, data["kind"], v["name"], v) for v in data["vectors"]]
    return tuple(found)


# --- from JSON to records -----------------------------------------------------------------------------------


def flag_bits(flags: type[EventFlag] | type[TopFlag] | type[EffectFlag], names: list[str]) -> int:
    bits = 0
    for name in names:
        bits |= int(flags[name])
    return bits


def to_events(rows: list[dict[str, Any]]) -> Events:
    """Events from their columns; what is left out is 0.

    `seq` counts from 1 and `ts` is 1,000 ns times `seq` when left out; `locate` is 1. `aux` is text, filled
    up with NULs, `aux_u32` maps a byte of aux to a number there; `flags` are names.
    """
    events = np.zeros(len(rows), EVENT)
    for i, row in enumerate(rows):
        event = events[i : i + 1]
        event["seq"] = row.get("seq", i + 1)
        event["ts"] = row.get("ts", 1000 * int(event["seq"][0]))
        event["locate"] = row.get("locate", 1)
        event["type"] = ord(row["type"])
        event["side"] = ord(row.get("side", "\0"))
        event["flags"] = flag_bits(EventFlag, row.get("flags", []))
        for column in ("ref", "ref2", "price", "qty"):
            event[column] = row.get(column, 0)
        aux = bytearray(row.get("aux", "").encode("latin-1").ljust(8, b"\0"))
        for at, number in row.get("aux_u32", {}).items():
            aux[int(at) : int(at) + 4] = int(number).to_bytes(4, "little")
        event["aux"] = np.frombuffer(bytes(aux), np.uint8)
    return events


def to_tops(events: Events, rows: list[list[Any]], locates: list[int], states: list[int]) -> Tops:
    """Tops from [bid price, quantity, count, ask price, quantity, count, flag names…], one for each event."""
    tops = np.zeros(len(rows), TOP)
    for i, row in enumerate(rows):
        tops[i] = (
            events["seq"][i], events["ts"][i], row[0], row[1], row[3], row[4], row[2], row[5], locates[i],
            states[i], flag_bits(TopFlag, row[6:]),
        )  # fmt: skip
    return tops


def to_effects(rows: list[list[Any]]) -> Effects:
    """Effects from [outcome, side, price, quantity, remaining, MPID, flag names…]; [] is NONE; only the
    outcome given: zeros."""
    effects = np.zeros(len(rows), EFFECT)
    for i, row in enumerate(rows):
        outcome, side, price, qty, remaining, mpid, *flags = row + ["NONE", "", 0, 0, 0, ""][len(row) :]
        effects[i] = (
            price, qty, remaining, tuple(mpid.encode("latin-1").ljust(4, b"\0")), ord(side or "\0"),
            int(Outcome[outcome]), flag_bits(EffectFlag, flags),
        )  # fmt: skip
    return effects


def book_arrays(data: dict[str, Any]) -> tuple[Events, Tops, Effects]:
    """Events, tops and effects of a book vector. `top_locates` and `states` (letters) are by event."""
    events = to_events(data["events"])
    locates = data.get("top_locates", [int(locate) for locate in events["locate"]])
    states = [ord(letter or "\0") for letter in data.get("states", [""] * len(events))]
    return events, to_tops(events, data["tops"], locates, states), to_effects(data["effects"])


def to_levels(rows: list[list[int]]) -> Levels:
    """Levels from [price, quantity, count]."""
    return np.array([tuple(row) for row in rows], LEVEL)


def to_state(name: str) -> TradingState:
    return TradingState[name]


def to_frames(texts: list[str]) -> NDArray[np.uint8]:
    """Bytes from hex texts, one for each framed message; blanks mean nothing. Read-only, as a mapped file
    is."""
    return np.frombuffer(b"".join(bytes.fromhex(text) for text in texts), np.uint8)


def to_column(values: list[bytes]) -> NDArray[Any]:
    """S[w], w being the longest value's length, at least 1."""
    return np.array(values, f"S{max([1, *map(len, values)])}")


def to_session(directory: dict[str, str]) -> Session:
    """A session whose directory has these symbols by locate."""
    session = Session()
    for locate, symbol in directory.items():
        session.directory.put(Instrument(int(locate), symbol))
    return session


# --- back to JSON -------------------------------------------------------------------------------------------

_WIDTH: Final = 110


def dump(value: Any, indent: int = 0) -> str:
    """JSON for people: what fits a line stands on one line, everything else is broken up."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or (
        indent and indent + len(flat) <= _WIDTH and not _nested(value)
    ):
        return flat
    inner = " " * (indent + 1)
    if isinstance(value, dict):
        parts = [
            f"{inner}{json.dumps(key, ensure_ascii=False)}: {dump(item, indent + 1)}"
            for key, item in value.items()
        ]
        return "{\n" + ",\n".join(parts) + f"\n{' ' * indent}}}"
    return "[\n" + ",\n".join(inner + dump(item, indent + 1) for item in value) + f"\n{' ' * indent}]"


def _nested(value: Any) -> bool:
    """Is it a vector or a list of rows, which read better one to a line?"""
    if isinstance(value, dict):
        return "reason" in value
    return any(isinstance(item, (dict, list)) for item in value) and len(value) > 1
