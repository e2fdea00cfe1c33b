"""Sequences over a stream of events: letters, keys and matches, batch by batch, resumable."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.contracts import Query
from trident_core.dtypes import EVENT, MATCHED, Events, Matched
from trident_core.errors import UsageError
from trident_core.session import Session
from trident_query.reference import ReferenceQuery
from trident_query.sequence.absence import AbsenceFilter
from trident_query.sequence.alphabet import Alphabet, TypeAlphabet
from trident_query.sequence.automaton import Threads, label
from trident_query.sequence.code import TakeRow, compile_pattern
from trident_query.sequence.keys import keys_for
from trident_query.sequence.measures import Scope
from trident_query.sequence.native import is_local, strip_own
from trident_query.sequence.passes import Pass
from trident_query.sequence.question import Question, Rows, SequenceError, Skip
from trident_query.sequence.reference import EventRow, Match
from trident_query.sequence.room import grow
from trident_query.sequence.walk import Matches
from trident_query.sequence.within_pass import WithinPass
from trident_query.where.fields import Checker
from trident_query.where.lower import Lowering
from trident_query.where.program import Machine

#: In letters: this is the first event of its partition.
FIRST_BIT: Final = np.uint32(1 << 31)
_STATE_VERSION: Final = 3


class EventSequence:
    """Finds the matches of a question (`native_question`) in events that come in batches, in order.

    Any split into batches gives the same matches. Conditions look at the event, and by prev at the one before
    in its partition; SKIP is past the last row. Not for several threads at once.
    """

    def __init__(
        self, question: Question, session: Session, per: str = "order", *, texts: Query | None = None,
        count_only: bool = False,
    ) -> None:  # fmt: skip
        self.question, self.session, self.per = question, session, per
        streamable(question)
        texts = texts or ReferenceQuery()
        lowering = Lowering(session, texts)
        self.bits: dict[str, int] = {}
        for name, tree in question.define.items():
            own = strip_own(tree, name)
            Checker(question.texts.get(name, ""), prev=True).condition(own)
            self.bits[name] = len(self.bits)
            lowering.add(own)
        if not self.bits:
            lowering.code.outputs.append(0)
        self.machine = Machine(lowering.code, texts)
        self.threads = Threads(compile_pattern(question.pattern), self.bits)
        alphabet = Alphabet(max(len(self.bits), 1))
        self.keys = keys_for(per)
        self.absence = AbsenceFilter(question.absence) if question.absence else None
        count_only = count_only and self.absence is None
        self.walk: Pass | WithinPass = (
            Pass(self.threads, alphabet, count_only=count_only)
            if question.within is None
            else WithinPass(self.threads, alphabet, question.within, count_only=count_only)
        )
        self.kept = np.zeros((1, max(lowering.code.slots, 1)), np.int64)
        self.total = 0
        self.last_seq = 0
        self._seen = np.zeros(1, np.uint8)

    def feed(self, events: Events) -> Matched:
        """MATCHED[m]: the matches that became final with these events. `key` is the order's first reference,
        the locate, or for --per mpid a number that `value` tells. Raises SequenceError at a cap."""
        if not len(events):
            return np.empty(0, MATCHED)
        self.last_seq = int(events["seq"][-1])
        keys, ends, ended = self.keys.of(events)
        count = self.keys.key_count
        self.kept = grow(self.kept, count) if self.machine.code.slots else self.kept
        bits = self.machine.bits(events, len(events), keys.astype(np.int64), self.kept)
        rows = events["seq"].astype(np.int64)
        times = events["ts"].astype(np.int64)
        found = self.walk.feed(bits, keys, rows, key_count=count, ends=ends, times=times)
        if len(ended):
            found = self._end(found, ended)
        if self.absence:
            wanted = bits >> np.uint32(self.bits[self.absence.absence.variable]) & np.uint32(1) == 1
            found = self.absence.feed(found, keys, rows, times, wanted, ended, held=self.walk.waiting())
        made = self._told(found)
        if self.machine.code.slots and len(ended):
            self.kept[ended] = 0
        self.keys.recycle(ended)
        return made

    def feed_types(
        self, types: NDArray[np.uint8], keys: NDArray[np.int32], first_row: int, *, key_count: int
    ) -> Matches:
        """Rows as two columns, type letters u8[n] and partitions i32[n] (-1: none), numbered from
        `first_row`: for questions whose conditions look at the type alone. i64[m, 5] as
        `trident_query.sequence.walk.Matches`.

        Raises UsageError for other questions, and where `feed` was used before.
        """
        if not isinstance(self.walk.alphabet, TypeAlphabet):
            if self.last_seq or self.machine.code.fields not in ([], ["type"]) or self.machine.code.slots:
                raise UsageError("columns of types answer conditions on the type alone", hint="feed events")
            every = np.zeros(256, EVENT)
            every["type"] = np.arange(256)
            self.walk.alphabet = TypeAlphabet(self.machine.bits(every, 256).tolist())
        rows = np.array([first_row], np.int64)
        return self.walk.feed(types, keys, rows, key_count=key_count)

    def _end(self, found: Matches, ended: NDArray[np.int64]) -> Matches:
        """Partitions that ended without a row of their own: finish what is under way in them."""
        under_way = self.walk.under_way(ended)
        return np.concatenate([found, self.walk.finish(under_way)]) if len(under_way) else found

    def finish(self) -> Matched:
        """MATCHED[m]: the stream ends, and all partitions with it."""
        found = self.walk.finish()
        if self.absence:
            found = self.absence.finish(found)
        return self._told(found)

    def _told(self, found: Matches) -> Matched:
        """With what keys stand for instead of the keys, which are used again."""
        self.total = self.walk.total if not self.absence else self.total + len(found)
        made = np.zeros(len(found), MATCHED)
        for place, name in enumerate(("first", "last", "rows", "last_ts"), start=1):
            made[name] = found[:, place]
        if self.per == "order":
            made["key"] = self.keys.born[found[:, 0]].astype(np.int64)  # type: ignore[union-attr]
        else:
            made["key"] = found[:, 0]
        return made

    def value(self, key: int) -> int | str:
        """A key as people know it: reference, symbol, MPID or "all"."""
        if self.per == "order":
            return key % (1 << 64)
        if self.per == "symbol":
            return self.session.directory.symbol(key) or key
        return self.keys.value(key)

    # --- one match

    def partition(self, events: Events) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
        """For events that are fed again to a fresh search of the same question: a number for each one's
        partition (-1: none), and its letter, which `rows` asks for."""
        keys, _, ended = self.keys.of(events)
        count = self.keys.key_count
        self.kept = grow(self.kept, count) if self.machine.code.slots else self.kept
        letters = self.machine.bits(events, len(events), keys.astype(np.int64), self.kept)
        self._seen = grow(self._seen, count)
        inside = np.flatnonzero(keys >= 0)
        firsts = inside[np.unique(keys[inside], return_index=True)[1]]
        letters[firsts[self._seen[keys[firsts]] == 0]] |= FIRST_BIT
        self._seen[keys[inside]] = 1
        self._seen[ended] = 0
        if self.machine.code.slots and len(ended):
            self.kept[ended] = 0
        self.keys.recycle(ended)
        return keys.astype(np.int64), letters

    def rows(self, events: Events, letters: NDArray[np.uint32]) -> list[dict[str, Any]]:
        """The measures of one match (or, with all rows, of each of its events), given its events and letters.

        `label` is what each event was taken for. Navigation sees the match's own events only.
        """
        threads, n = self.threads, len(events)
        bits = (letters & ~FIRST_BIT).tolist()
        first = bool(n) and bool(letters[0] & FIRST_BIT)
        taken = label(threads, bits, first=first, last=False) or label(threads, bits, first=first, last=True)
        steps = [step for where in taken if isinstance(step := threads.program[where], TakeRow)]
        names = [step.name for step in steps]
        rows = [EventRow(event, self.session) for event in events]
        found = Match(1, 0, n, names, [step.hidden for step in steps])
        every = (
            [row for row in range(n) if not found.hidden[row]] if self.question.rows is Rows.ALL else [n - 1]
        )
        made = []
        for at in every:
            values = Scope.of_match(rows, found, self.question.subsets, at).measures(self.question.measures)
            row: dict[str, Any] = {"labels": " ".join(names)}
            if self.question.rows is Rows.ALL:
                row = {"seq": int(events["seq"][at]), "labels": names[at] if names else ""}
            made.append({**row, **values})
        return made

    # --- state

    def fingerprint(self) -> str:
        """What must be the same for a saved state to fit."""
        q = self.question
        return repr((_STATE_VERSION, q.pattern, sorted(q.texts.items()), q.within, q.absence, self.per))

    def save(self, path: Path) -> None:
        """Write what the search knows into a file, to go on later with events after `last_seq`.

        Raises UsageError where the file cannot be written.
        """
        arrays, plain = _parts(self)
        meta = {
            "fingerprint": self.fingerprint(),
            "last_seq": self.last_seq,
            "total": self.total,
            "plain": plain,
        }
        buffer = io.BytesIO()
        np.savez(buffer, meta=np.frombuffer(json.dumps(meta).encode(), np.uint8), **arrays)  # type: ignore[arg-type]
        try:
            path.write_bytes(buffer.getvalue())
        except OSError as error:
            raise UsageError(f"cannot write {path}: {error.strerror}") from None

    def load(self, path: Path) -> None:
        """Go on from a saved state. Raises UsageError for another question's state or a file that is none."""
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
                meta = json.loads(data["meta"].tobytes())
                if meta["fingerprint"] != self.fingerprint():
                    raise UsageError(f"{path} is the state of another question")
                arrays = {name: data[name] for name in data.files if name != "meta"}
            _restore(self, arrays, meta["plain"])
            self.last_seq, self.total = int(meta["last_seq"]), int(meta["total"])
        except UsageError:
            raise
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror or error}") from None
        except Exception as error:  # a damaged archive raises whatever its parts do
            raise UsageError(
                f"{path} is no saved state: {error!r}", hint="delete it to start afresh"
            ) from None

    def explain(self) -> dict[str, Any]:
        """What was compiled, and which engine runs."""
        within = self.question.within
        return {
            "engine": "one automaton for all starts, a table look-up an event" if within is None
            else f"an automaton for each open start (within {within} ns), a table look-up each",
            "per": self.per,
            "conditions": dict(self.question.texts),
            "instructions": len(self.threads.program),
            "condition machine": f"{len(self.machine.code.instructions)} instructions",
            "states so far": len(self.walk.machine.states),
            "letters so far": len(self.walk.alphabet.symbols) - 1,
        }  # fmt: skip


def streamable(question: Question) -> None:
    """Raises SequenceError, naming the part, for what one linear pass over a stream cannot answer."""
    question.check()
    for name, tree in question.define.items():
        if not is_local(strip_own(tree, name)):
            raise SequenceError(
                f"the condition of {name} depends on the match so far: {question.texts.get(name, '')}",
                hint="only the row itself and prev(…) are linear; --allow-backtracking tries it, capped",
            )
    if question.skip is not Skip.PAST_LAST:
        raise SequenceError(
            f"SKIP {question.skip.value} needs all rows of a partition at once",
            hint="give the rows as a table (`table_matches`)",
        )


_WALK: Final = {
    Pass: ("lasts", "pool"),
    WithinPass: ("heads", "seen", "lasts", "pool"),
}
_KEYS: Final = ("refs", "slots", "left", "born", "firm", "firms", "free", "counts")


def _parts(sequence: EventSequence) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    walk = sequence.walk
    arrays = {f"walk_{name}": getattr(walk, name) for name in _WALK[type(walk)]}
    arrays["kept"] = sequence.kept
    for name in _KEYS:
        if hasattr(sequence.keys, name):
            arrays[f"keys_{name}"] = getattr(sequence.keys, name)
    plain: dict[str, Any] = {
        "states": walk.machine.states, "total": walk.total, "key_count": sequence.keys.key_count,
    }  # fmt: skip
    if isinstance(walk, Pass):
        arrays["walk_state"], arrays["walk_registers"] = walk.parts()
        plain["groups"], plain["bundles"] = walk.operations.groups, walk.operations.bundles
    if sequence.absence:
        arrays["absence"], arrays["absence_rows"] = sequence.absence.pending, sequence.absence.rows
    return arrays, plain


def _restore(sequence: EventSequence, arrays: dict[str, NDArray[Any]], plain: dict[str, Any]) -> None:
    walk = sequence.walk
    if isinstance(walk, Pass):
        walk.machine.states = [tuple((int(a), int(b)) for a, b in state) for state in plain["states"]]
        first = int(walk.machine.threads.uses_start)
        walk.machine.numbers = {state: n for n, state in enumerate(walk.machine.states) if n >= first}
        walk.operations.groups, walk.operations.bundles = int(plain["groups"]), int(plain["bundles"])
    else:
        walk.machine.states = [tuple(map(int, state)) for state in plain["states"]]
        walk.machine.numbers = {state: n for n, state in enumerate(walk.machine.states)}
    for name in _WALK[type(walk)]:
        setattr(walk, name, arrays[f"walk_{name}"])
    if isinstance(walk, Pass):
        walk.restore(arrays["walk_state"], arrays["walk_registers"])
    walk.total = int(plain["total"])
    sequence.kept = arrays["kept"]
    for name in _KEYS:
        if f"keys_{name}" in arrays:
            setattr(sequence.keys, name, arrays[f"keys_{name}"])
    if not hasattr(sequence.keys, "refs"):
        sequence.keys.key_count = int(plain["key_count"])
    if sequence.absence:
        sequence.absence.pending, sequence.absence.rows = arrays["absence"], arrays["absence_rows"]
