"""What an exchange is: its symbols, its rules, its day. It stands at the head of the journal."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from trident_core.contracts.matching import MarketRules
from trident_core.errors import UsageError
from trident_core.session import Instrument, Session

SYMBOLS_MAX: Final = 10_000
DEFAULT_SYMBOLS: Final = ("AAPL", "AMZN", "GOOGL", "META", "MSFT", "NVDA", "TSLA", "ZVZZT")


@dataclass(frozen=True, slots=True)
class Config:
    """What the exchange's answers depend on. `session` names its streams (1 to 10 characters)."""

    date: dt.date
    symbols: tuple[str, ...] = DEFAULT_SYMBOLS
    rules: MarketRules = field(default_factory=MarketRules)
    session: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "session", self.session or f"{self.date:%Y%m%d}")
        if not 1 <= len(self.symbols) <= SYMBOLS_MAX:
            raise UsageError(f"{len(self.symbols)} symbols", hint=f"an exchange has 1 to {SYMBOLS_MAX}")
        for symbol in self.symbols:
            if not 1 <= len(symbol) <= 8 or not (
                symbol.isascii() and symbol.isprintable() and " " not in symbol
            ):
                raise UsageError(f"not a symbol: {symbol!r}", hint="1 to 8 ASCII characters without spaces")
        if len(set(self.symbols)) < len(self.symbols):
            twice = next(each for each in self.symbols if self.symbols.count(each) > 1)
            raise UsageError(f"the symbol {twice} is named twice")
        if len(self.session) > 10 or not (self.session.isascii() and self.session.isalnum()):
            raise UsageError(f"not a session: {self.session!r}", hint="1 to 10 letters and digits")

    def to_json(self) -> bytes:
        rules = asdict(self.rules)
        rules["ticks"] = [list(each) for each in self.rules.ticks]
        data = {
            "date": self.date.isoformat(),
            "session": self.session,
            "symbols": self.symbols,
            "rules": rules,
        }
        return json.dumps(data, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Config:
        """The inverse. Raises UsageError for anything else."""
        try:
            data: dict[str, Any] = json.loads(text)
            rules = dict(data["rules"])
            rules["ticks"] = tuple((int(start), int(tick)) for start, tick in rules["ticks"])
            return cls(
                dt.date.fromisoformat(data["date"]),
                tuple(data["symbols"]),
                MarketRules(**rules),
                data["session"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UsageError(f"not the configuration of an exchange: {error!r}") from None

    def make_session(self) -> Session:
        """The session, with its directory: symbol i has the locate i + 1."""
        session = Session(venue="TRDX", date=self.date)
        for i, symbol in enumerate(self.symbols):
            session.directory.put(Instrument(i + 1, symbol))
        return session


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may cost the others. None of these changes an answer."""

    accounts_max: int = 1_000
    connections_max: int = 256
    #: Messages a second of one account; more are left in its socket until their time has come.
    messages_per_s: int = 100_000
    #: Messages of one connection in one batch: every connection has its turn.
    turn_messages: int = 1_024
    #: Messages in one batch, of all connections.
    batch_messages: int = 8_192
    #: Bytes that wait to be sent to one connection; the rest of its stream waits in a file.
    unsent_bytes: int = 1 << 18
    #: A connection to which nothing could be sent for so long is closed.
    stall_s: float = 10.0
    heartbeat_s: float = 1.0
    timeout_s: float = 15.0
    #: A connection that does not log in is closed.
    login_s: float = 5.0
    #: Requests a second of one address for messages of the feed to be sent again.
    requests_per_s: int = 1_000
