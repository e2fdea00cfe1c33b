"""What belongs to the session and not to the event: venue, date, time zone, scales and the directory."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any
from zoneinfo import ZoneInfo

from trident_core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Instrument:
    """One symbol of the day. `details` holds what the venue says of it (ITCH: the fields of R, by name)."""

    locate: int
    symbol: str
    details: Mapping[str, str | int] = field(default_factory=dict)

    @property
    def is_test(self) -> bool:
        """A test issue, not for display (R: authenticity T)."""
        return self.details.get("authenticity") == "T"


class Directory:
    """locate -> instrument. Symbols are dictionary-coded by birth: patterns on symbols run here.

    `version` grows with every change, so that a store knows when to record it again.
    """

    def __init__(self, instruments: Iterable[Instrument] = ()) -> None:
        self._by_locate: dict[int, Instrument] = {}
        self.version = 0
        for instrument in instruments:
            self.put(instrument)

    def put(self, instrument: Instrument) -> None:
        """Add or replace the instrument of a locate. An entry without details never replaces one that has."""
        old = self._by_locate.get(instrument.locate)
        if old == instrument:
            return
        if old is not None and old.symbol == instrument.symbol and not instrument.details:
            return
        self._by_locate[instrument.locate] = instrument
        self.version += 1

    def symbol(self, locate: int) -> str:
        """The symbol of `locate`; empty if the directory does not have it (ITCH: locate 0 is no stock)."""
        instrument = self._by_locate.get(locate)
        return instrument.symbol if instrument else ""

    def locate(self, symbol: str) -> int:
        """The locate of `symbol`. Raises UsageError, with the nearest names, if there is none."""
        for instrument in self._by_locate.values():
            if instrument.symbol == symbol:
                return instrument.locate
        import difflib

        near = difflib.get_close_matches(symbol.upper(), self.symbols(), n=3, cutoff=0.5)
        hint = f"near names: {', '.join(near)}" if near else f"the session has {len(self)} symbols"
        raise UsageError(f"no symbol {symbol!r} in this session", hint=hint)

    def symbols(self) -> list[str]:
        return [instrument.symbol for instrument in self]

    def get(self, locate: int) -> Instrument | None:
        return self._by_locate.get(locate)

    def __iter__(self) -> Iterator[Instrument]:
        """Instruments by ascending locate."""
        return iter([self._by_locate[locate] for locate in sorted(self._by_locate)])

    def __len__(self) -> int:
        return len(self._by_locate)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Directory) and self._by_locate == other._by_locate

    __hash__ = None  # type: ignore[assignment]  # mutable

    def as_mapping(self) -> Mapping[int, Instrument]:
        return MappingProxyType(self._by_locate)


@dataclass(slots=True)
class Session:
    """One trading session of one venue.

    Event times are nanoseconds since midnight in `tz`; prices have `price_decimals` and quantities
    `qty_decimals` decimals. `date` is None when neither the name of the input nor the user told it.
    """

    venue: str = "XNAS"
    date: dt.date | None = None
    tz: str = "America/New_York"
    price_decimals: int = 4
    qty_decimals: int = 0
    protocol: str = "itch50"
    directory: Directory = field(default_factory=Directory)

    def midnight_ns(self) -> int:
        """UTC nanoseconds of the session's local midnight (0 when the date is not known).

        Raises UsageError for a time zone that is not known here, and for a date whose nanoseconds 64 bits do
        not hold (before 1678, after 2261).
        """
        if self.date is None:
            return 0
        if not 1678 <= self.date.year <= 2261:
            raise UsageError(f"{self.date} is beyond what 64 bits of nanoseconds hold", hint="1678 to 2261")
        try:
            zone = ZoneInfo(self.tz)
        except (KeyError, ValueError, OSError):
            raise UsageError(f"no time zone {self.tz!r} on this machine", hint="install tzdata?") from None
        midnight = dt.datetime.combine(self.date, dt.time(), tzinfo=zone)
        return int(midnight.timestamp()) * 1_000_000_000

    def learn(self, other: Session) -> None:
        """Take over what another reading of the same input found out; a date that is known stays."""
        self.venue, self.tz, self.protocol = other.venue, other.tz, other.protocol
        self.price_decimals, self.qty_decimals = other.price_decimals, other.qty_decimals
        self.date = self.date or other.date
        for instrument in other.directory:
            self.directory.put(instrument)

    def to_json(self) -> dict[str, Any]:
        return {
            "venue": self.venue,
            "date": self.date.isoformat() if self.date else None,
            "tz": self.tz,
            "price_decimals": self.price_decimals,
            "qty_decimals": self.qty_decimals,
            "protocol": self.protocol,
            "directory": [[i.locate, i.symbol, dict(i.details)] for i in self.directory],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Session:
        """The inverse of `to_json`. Raises UsageError if a field is missing or of another type."""
        try:
            return cls(
                venue=str(data["venue"]),
                date=dt.date.fromisoformat(data["date"]) if data["date"] else None,
                tz=str(data["tz"]),
                price_decimals=int(data["price_decimals"]),
                qty_decimals=int(data["qty_decimals"]),
                protocol=str(data["protocol"]),
                directory=Directory(
                    Instrument(int(locate), str(symbol), details)
                    for locate, symbol, details in data["directory"]
                ),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"not a session: {error!r}") from None


def format_time(ts: int) -> str:
    """Nanoseconds since midnight as HH:MM:SS.nnnnnnnnn."""
    seconds, nanos = divmod(int(ts), 1_000_000_000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{nanos:09d}"


def parse_time(text: str) -> int:
    """'10:31', '10:31:07' or '10:31:07.5' as nanoseconds since midnight. Raises UsageError."""
    try:
        clock, _, fraction = text.strip().partition(".")
        parts = [int(part) for part in clock.split(":")]
        hours, minutes, seconds = [*parts, 0, 0][:3]
        if not (2 <= len(parts) <= 3 and 0 <= minutes < 60 and 0 <= seconds < 60 and 0 <= hours < 48):
            raise ValueError
        if fraction and not (fraction.isdigit() and len(fraction) <= 9):
            raise ValueError
        return (hours * 3600 + minutes * 60 + seconds) * 1_000_000_000 + int(fraction.ljust(9, "0") or 0)
    except ValueError:
        raise UsageError(f"not a time of day: {text!r}", hint="write 10:31, 10:31:07 or 10:31:07.5") from None


def format_price(price: int, decimals: int) -> str:
    """An integer price at a scale, exactly, with at least two decimals shown where the scale has them."""
    if decimals == 0:
        return str(price)
    sign = "-" if price < 0 else ""
    whole, part = divmod(abs(int(price)), 10**decimals)
    digits = f"{part:0{decimals}d}"
    return f"{sign}{whole}.{digits[:2]}{digits[2:].rstrip('0')}"
