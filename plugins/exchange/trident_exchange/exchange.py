"""An exchange on a disk: its journal, the core that the journal drives, and the streams that come of it.

Three steps make a batch: `journal.append(records)` makes it durable, `core.apply(records)` carries it out,
and `release()` puts what was said into the streams. The first two may go side by side; the third must wait
for both, for what stands in a stream may be sent. Opening reads the journal and does the last two, so that
the streams, and the books, are what they were: a kill -9 loses what was not answered, and nothing else.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np

from trident_core.contracts import Kind
from trident_core.contracts.engine import Capability
from trident_core.contracts.matching import Matcher
from trident_core.dtypes import Events
from trident_core.errors import PluginError, StoreError, UsageError
from trident_core.plugins import registry
from trident_core.session import Session
from trident_exchange.config import Config
from trident_exchange.core import Core
from trident_exchange.journal import Journal, Record, What
from trident_exchange.open_orders import Account
from trident_exchange.stream import Stream

#: Records of a batch while the journal is read.
_REPLAYED: Final = 8_192
#: A session's times need 48 bits in ITCH: about three days from its midnight.
_TS_LIMIT: Final = 1 << 48

MakeMatcher = Callable[[Session, Any], Matcher]


def select_matcher(book: str | None) -> tuple[str, MakeMatcher]:
    """Name and factory of the book engine with the capability `match`. Raises PluginError."""
    selection = registry().select(Kind.BOOK, book)
    if Capability.MATCH not in selection.spec.capabilities:
        able = [spec.name for spec in registry().engines(Kind.BOOK) if Capability.MATCH in spec.capabilities]
        raise PluginError(
            f"book engine {selection.spec.name!r} cannot match orders",
            hint=f"--book takes {', '.join(able) or 'none that is installed'}",
        )
    made: MakeMatcher = selection.load().matcher
    return selection.spec.name, made


class Exchange:
    """`feed`: the stream of ITCH 5.0. `streams`: of each account, SoupBinTCP packets of OUCH."""

    def __init__(
        self, folder: Path, config: Config | None, make_matcher: MakeMatcher, *, store: str | None = None,
        keep_feed: bool = False,
    ) -> None:  # fmt: skip
        """Opens the exchange in `folder`, or makes it there with `config`. Raises UsageError when `config` is
        missing or another than the exchange's, StoreError for a damaged journal."""
        self.folder = folder
        wanted = config or Config(date=today())
        self.journal = Journal(folder / "journal", wanted.make_session(), store=store)
        self.streams: dict[int, Stream] = {}
        self.replayed = 0
        self.replay_s = 0.0
        self.keep: Any = None
        records = iter(self.journal.read())
        head = next(records, None)
        self.config = Config.from_json(head.data) if head else wanted
        if head and (head.what != What.CONFIG or (config and config != self.config)):
            self.journal.close()
            raise UsageError(
                f"the exchange in {folder} has other symbols, rules or another date",
                hint="leave those options out, or take another folder",
            )
        self.session = self.config.make_session()
        self.feed = Stream()
        self.core = Core(self.config, make_matcher(self.session, self.config.rules))
        self.encode = _encoder(self.session)
        if keep_feed:
            from trident_exchange.keeping import FeedStore

            self.keep = FeedStore(folder / "feed", self.session, store=store)
        if head:
            self._replay(records)
        else:
            self._begin()
        # What an engine compiles when it is first asked, it compiles now: later, everybody would wait.
        matcher = self.core.matcher
        matcher.orders(1), matcher.state(1), matcher.live_orders(), matcher.digest()

    def _replay(self, records: Iterable[Record]) -> None:
        began = time.perf_counter()
        records = iter(records)
        while batch := list(islice(records, _REPLAYED)):
            self.core.apply(batch)
            self.release()
            self.replayed += len(batch)
        self.replay_s = time.perf_counter() - began

    def _begin(self) -> None:
        ts = self.clock()
        opening = json.dumps({"do": "open"}).encode()
        records = [Record(What.CONFIG, 0, ts, self.config.to_json()), Record(What.COMMAND, 0, ts, opening)]
        self.journal.append(records)
        self.core.apply(records)
        self.release()

    # --- batches

    def clock(self) -> int:
        """Nanoseconds since the session's midnight; never less than before. Raises StoreError when the
        session is older than its times can tell."""
        ts = max(time.time_ns() - self.session.midnight_ns(), self.core.now, 0)
        if ts >= _TS_LIMIT:
            raise StoreError(
                f"the session of {self.config.date} is more than three days old",
                hint="begin another: a new folder",
            )
        return ts

    def release(self) -> dict[int, int]:
        """Put what was said since the last time into the streams; how many messages each account got."""
        said, events = self.core.take()
        for number, messages in said.items():
            self.stream(number).append([b"S" + message for message in messages])
        if any(map(len, events)):
            self._publish(np.concatenate(events))
        return {number: len(messages) for number, messages in said.items()}

    def stream(self, number: int) -> Stream:
        found = self.streams.get(number)
        if found is None:
            found = self.streams[number] = Stream()
        return found

    def _publish(self, events: Events) -> None:
        events["seq"] = np.arange(self.feed.next, self.feed.next + len(events), dtype=np.uint64)
        self.feed.append_framed(self.encode(events))
        if self.keep is not None:
            self.keep.append(events)

    def account_record(self, name: str, firm: str, cancel_on_disconnect: bool) -> Record:
        """What opens an account for a user who has none yet."""
        data = {"name": name, "firm": firm, "cancel_on_disconnect": cancel_on_disconnect}
        return Record(What.ACCOUNT, len(self.core.accounts) + 1, self.clock(), json.dumps(data).encode())

    def account(self, name: str) -> Account | None:
        return self.core.by_name.get(name)

    def digest(self) -> str:
        """Of the books, as the feed shows them."""
        return self.core.matcher.digest().hex()

    def close(self) -> None:
        self.journal.close()
        if self.keep is not None:
            self.keep.close()
        for stream in (*self.streams.values(), self.feed):
            stream.close()


def _encoder(session: Session) -> Callable[[Events], bytes]:
    """EVENTs to framed ITCH 5.0, by the selected parser engine."""
    parser = registry().select(Kind.PARSER).make(session)
    if not hasattr(parser, "encode_events"):
        parser = registry().select(Kind.PARSER, "reference").make(session)

    def encode(events: Events) -> bytes:
        return bytes(parser.encode_events(events).tobytes())

    return encode


def today() -> Any:
    """The date in New York."""
    import datetime as dt
    from zoneinfo import ZoneInfo

    return dt.datetime.now(ZoneInfo("America/New_York")).date()
