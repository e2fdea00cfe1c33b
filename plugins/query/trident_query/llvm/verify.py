"""Candidates -> spans: the longest match from each, by an automaton that is built as the text needs it.

The automaton is Glushkov's, made deterministic by subsets on the way. The code walks its table until it comes
to a state without a row, and returns; the row is made here, and the walk goes on from where it was. When the
table is full it is emptied, so memory is bounded for any pattern.

Walks from several candidates may read the same bytes. Beyond as many bytes walked for each byte of text as
the pattern has positions (`WORK` at the least), the answer is given up (SpentError), so that time stays
within pattern times text; the caller has another way.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from trident_query.glushkov import Glushkov
from trident_query.kinds import ALL_KINDS, KINDS, OUTSIDE
from trident_query.llvm.host import host, object_code
from trident_query.llvm.loader import Library
from trident_query.llvm.objects import Stored

#: Bytes of a table of transitions.
TABLE_BYTES_MAX: Final = 4 << 20
#: A table emptied so often is given up: the pattern has too many states for this text.
FLUSHES_MAX: Final = 8
#: Bytes walked for each byte of text, and at the least.
WORK: Final = 8
WORK_MIN: Final = 1 << 16

DONE, MISSING, FULL, SPENT = range(4)
_DEAD: Final = 0
_NO_STATE: Final = -1

#: Fields of the call, i64 each, in the order of `_IR`.
_FIELDS: Final = (
    "data", "size", "candidates", "count", "index", "last_end", "table", "classes", "class_of", "kind_of",
    "accepts", "starts", "spans", "room", "given", "state", "at", "best", "work",
)  # fmt: skip


class SpentError(Exception):
    """The walks took too long, or the table was emptied too often."""


class LazyTable:
    """Rows of the deterministic automaton, made on demand. For one thread at a time."""

    def __init__(self, automaton: Glushkov) -> None:
        self.automaton = automaton
        self.class_of = np.frombuffer(automaton.classes.of, np.uint8)
        self.kind_of = np.frombuffer(automaton.kind_of, np.uint8)
        classes = automaton.classes.count
        self.states_max = max(16, TABLE_BYTES_MAX // (4 * classes))
        self.table = np.empty((0, classes), np.int32)
        self.accepts = np.empty(0, np.uint8)
        self.starts = np.zeros(KINDS, np.int32)
        self.flushes = -1
        self._readers = {values: automaton.classes.within(values) for values in set(automaton.values)}
        self._kinds = [automaton.kind_of[value] for value in automaton.classes.representatives]
        self._sets: list[frozenset[int]] = []
        self._begins: list[int] = []  # by state: the kind before a start, else _NO_STATE
        self._numbers: dict[tuple[frozenset[int], int], int] = {}
        self.flush()

    def flush(self, keep: int = _NO_STATE) -> int:
        """Forget all states but the starts and `keep`; return the number that `keep` has now."""
        kept = (self._sets[keep], self._begins[keep]) if keep > _NO_STATE else None
        self._sets, self._begins, self._numbers = [], [], {}
        self.table[: len(self.table)] = _NO_STATE
        self._number(frozenset(), _NO_STATE)  # _DEAD
        for kind in range(KINDS):
            self.starts[kind] = self._number(frozenset(), kind)
        self.table[_DEAD] = _DEAD
        self.flushes += 1
        return self._number(*kept) if kept else _NO_STATE

    def expand(self, state: int) -> int:
        """Make the row of `state`; return its number, which is another one if the table was emptied."""
        room = self.states_max - len(self._sets)
        if room < self.automaton.classes.count:
            if self.flushes >= FLUSHES_MAX:
                raise SpentError(f"the table of states was emptied {self.flushes} times")
            state = self.flush(state)
        begins, automaton = self._begins[state], self.automaton
        buckets: list[set[int]] = [set() for _ in range(automaton.classes.count)]
        lists = {id(automaton.follow[p]): automaton.follow[p] for p in self._sets[state]}
        if begins > _NO_STATE:
            lists[-1] = automaton.first[begins]
        for steps in lists.values():
            for q in steps:
                for number in self._readers[automaton.values[q]]:
                    buckets[number].add(q)
        row = [self._number(frozenset(bucket), _NO_STATE) if bucket else _DEAD for bucket in buckets]
        self.table[state] = row
        return state

    def _number(self, places: frozenset[int], begins: int) -> int:
        known = self._numbers.get((places, begins))
        if known is not None:
            return known
        number = self._numbers[places, begins] = len(self._sets)
        self._sets.append(places)
        self._begins.append(begins)
        if number >= len(self.table):
            self._grow()
        mask = 0
        for p in places:
            mask |= self.automaton.accepts[p]
            if mask == ALL_KINDS:
                break
        self.accepts[number] = mask
        return number

    def _grow(self) -> None:
        size = max(64, 2 * len(self.table))
        table = np.full((size, self.table.shape[1]), _NO_STATE, np.int32)
        table[: len(self.table)] = self.table
        accepts = np.zeros(size, np.uint8)
        accepts[: len(self.accepts)] = self.accepts
        self.table, self.accepts = table, accepts

    @property
    def states(self) -> int:
        return len(self._sets)


class Verifier:
    """One pass over a text: feed it candidates, ascending, and take spans."""

    def __init__(self, table: LazyTable, data: NDArray[np.uint8], room: int) -> None:
        self.lazy, self.data = table, data
        self.spans = np.empty((room, 2), np.int64)
        self.call = np.zeros(len(_FIELDS), np.int64)
        self._set("data", data.ctypes.data)
        self._set("size", len(data))
        self._set("state", _NO_STATE)
        self._set("class_of", table.class_of.ctypes.data)
        self._set("kind_of", table.kind_of.ctypes.data)
        self._set("starts", table.starts.ctypes.data)
        self._set("classes", table.table.shape[1])
        self._set("spans", self.spans.ctypes.data)
        self._set("room", room)
        self.times = max(WORK, len(table.automaton))
        self._set("work", WORK_MIN + self.times * len(data))

    def _set(self, field: str, value: int) -> None:
        self.call[_FIELDS.index(field)] = value

    def _get(self, field: str) -> int:
        return int(self.call[_FIELDS.index(field)])

    @property
    def last_end(self) -> int:
        """Where the last span ended; no other may begin before."""
        return self._get("last_end")

    @last_end.setter
    def last_end(self, value: int) -> None:
        self._set("last_end", value)

    def feed(self, candidates: NDArray[np.int64]) -> None:
        """Candidates, ascending, after all that were fed before; to be kept until `run` has used them up."""
        self._set("candidates", candidates.ctypes.data)
        self._set("count", len(candidates))
        self._set("index", 0)

    def run(self) -> tuple[NDArray[np.int64], bool]:
        """(spans found, whether all candidates are used up). Raises SpentError."""
        lazy, verify = self.lazy, load_walk()
        self._set("given", 0)
        while True:
            self._set("table", lazy.table.ctypes.data)
            self._set("accepts", lazy.accepts.ctypes.data)
            status = verify(self.call.ctypes.data)
            if status == SPENT:
                raise SpentError(f"the text was walked over more than {self.times} times")
            if status != MISSING:
                return self.spans[: self._get("given")], status == DONE
            self._set("state", lazy.expand(self._get("state")))


# --- the walk -----------------------------------------------------------------------------------------------

_POINTERS: Final = ("data", "candidates", "table", "class_of", "kind_of", "accepts", "starts", "spans")
_SAVED: Final = ("index", "last_end", "given", "state", "at", "best", "work")

# `index`: the candidate in work. `state` -1: it has not been begun. `best` -1: no match from it yet.
_IR: Final = """
define i64 @verify(ptr %call) {{
entry:
{loads}
  %resumed = icmp sge i64 %state_0, 0
  br i1 %resumed, label %walk_resumed, label %candidate
walk_resumed:
  br label %walk
candidate:
  %index = phi i64 [ %index_0, %entry ], [ %index_n, %skip ], [ %index_n2, %finished ]
  %last_end = phi i64 [ %last_end_0, %entry ], [ %last_end, %skip ], [ %last_end_f, %finished ]
  %given = phi i64 [ %given_0, %entry ], [ %given, %skip ], [ %given_f, %finished ]
  %work = phi i64 [ %work_0, %entry ], [ %work, %skip ], [ %work_w, %finished ]
  %more = icmp slt i64 %index, %count
  br i1 %more, label %take, label %out_done
take:
  %c_at = getelementptr i64, ptr %candidates, i64 %index
  %start = load i64, ptr %c_at
  %late = icmp slt i64 %start, %last_end
  br i1 %late, label %skip, label %begin
skip:
  %index_n = add i64 %index, 1
  br label %candidate
begin:
  %first = icmp eq i64 %start, 0
  br i1 %first, label %begun, label %behind
behind:
  %p = sub i64 %start, 1
  %p_at = getelementptr i8, ptr %data, i64 %p
  %p_byte = load i8, ptr %p_at
  %p_64 = zext i8 %p_byte to i64
  %p_kind_at = getelementptr i8, ptr %kind_of, i64 %p_64
  %p_kind = load i8, ptr %p_kind_at
  %p_kind_64 = zext i8 %p_kind to i64
  br label %begun
begun:
  %kind = phi i64 [ {outside}, %begin ], [ %p_kind_64, %behind ]
  %s_at = getelementptr i32, ptr %starts, i64 %kind
  %s_32 = load i32, ptr %s_at
  %s = zext i32 %s_32 to i64
  br label %walk
walk:
  %w_index = phi i64 [ %index_0, %walk_resumed ], [ %index, %begun ], [ %w_index, %step ]
  %w_last = phi i64 [ %last_end_0, %walk_resumed ], [ %last_end, %begun ], [ %w_last, %step ]
  %w_given = phi i64 [ %given_0, %walk_resumed ], [ %given, %begun ], [ %w_given, %step ]
  %work_w = phi i64 [ %work_0, %walk_resumed ], [ %work, %begun ], [ %work_n, %step ]
  %state = phi i64 [ %state_0, %walk_resumed ], [ %s, %begun ], [ %next, %step ]
  %at = phi i64 [ %at_0, %walk_resumed ], [ %start, %begun ], [ %at_n, %step ]
  %best = phi i64 [ %best_0, %walk_resumed ], [ -1, %begun ], [ %best_n, %step ]
  %end = icmp sge i64 %at, %size
  br i1 %end, label %at_end, label %inside
at_end:
  br label %judge
inside:
  %b_at = getelementptr i8, ptr %data, i64 %at
  %b = load i8, ptr %b_at
  %b_64 = zext i8 %b to i64
  %b_kind_at = getelementptr i8, ptr %kind_of, i64 %b_64
  %b_kind = load i8, ptr %b_kind_at
  br label %judge
judge:
  %after = phi i8 [ {outside}, %at_end ], [ %b_kind, %inside ]
  %b_read = phi i64 [ 0, %at_end ], [ %b_64, %inside ]
  %a_at = getelementptr i8, ptr %accepts, i64 %state
  %a = load i8, ptr %a_at
  %a_moved = lshr i8 %a, %after
  %a_bit = and i8 %a_moved, 1
  %accepted = icmp ne i8 %a_bit, 0
  %best_n = select i1 %accepted, i64 %at, i64 %best
  br i1 %end, label %finish, label %look
look:
  %class_at = getelementptr i8, ptr %class_of, i64 %b_read
  %class = load i8, ptr %class_at
  %class_64 = zext i8 %class to i64
  %row = mul i64 %state, %classes
  %cell = add i64 %row, %class_64
  %t_at = getelementptr i32, ptr %table, i64 %cell
  %t = load i32, ptr %t_at
  %missing = icmp slt i32 %t, 0
  br i1 %missing, label %out_missing, label %known
known:
  %next = zext i32 %t to i64
  %dead = icmp eq i32 %t, {dead}
  br i1 %dead, label %finish, label %step
step:
  %at_n = add i64 %at, 1
  %work_n = sub i64 %work_w, 1
  br label %walk
finish:
  %matched = icmp sge i64 %best_n, 0
  br i1 %matched, label %give, label %finished_none
give:
  %c2_at = getelementptr i64, ptr %candidates, i64 %w_index
  %from = load i64, ptr %c2_at
  %slot = mul i64 %w_given, 2
  %from_at = getelementptr i64, ptr %spans, i64 %slot
  store i64 %from, ptr %from_at
  %to_at = getelementptr i64, ptr %from_at, i64 1
  store i64 %best_n, ptr %to_at
  %given_n = add i64 %w_given, 1
  br label %finish_all
finished_none:
  br label %finish_all
finish_all:
  %last_end_f = phi i64 [ %best_n, %give ], [ %w_last, %finished_none ]
  %given_f = phi i64 [ %given_n, %give ], [ %w_given, %finished_none ]
  %index_n2 = add i64 %w_index, 1
  %is_full = icmp sge i64 %given_f, %room
  br i1 %is_full, label %out_full, label %afford
afford:
  %spent = icmp slt i64 %work_w, 0
  br i1 %spent, label %out_spent, label %finished
finished:
  br label %candidate
out_done:
  br label %out
out_missing:
  br label %out
out_full:
  br label %out
out_spent:
  ret i64 {spent}
out:
  %index_o = phi i64 [ %index, %out_done ], [ %w_index, %out_missing ], [ %index_n2, %out_full ]
  %last_end_o = phi i64 [ %last_end, %out_done ], [ %w_last, %out_missing ], [ %last_end_f, %out_full ]
  %given_o = phi i64 [ %given, %out_done ], [ %w_given, %out_missing ], [ %given_f, %out_full ]
  %state_o = phi i64 [ -1, %out_done ], [ %state, %out_missing ], [ -1, %out_full ]
  %at_o = phi i64 [ 0, %out_done ], [ %at, %out_missing ], [ 0, %out_full ]
  %best_o = phi i64 [ -1, %out_done ], [ %best_n, %out_missing ], [ -1, %out_full ]
  %work_o = phi i64 [ %work, %out_done ], [ %work_w, %out_missing ], [ %work_w, %out_full ]
  %status = phi i64 [ {done}, %out_done ], [ {missing}, %out_missing ], [ {full}, %out_full ]
{stores}
  ret i64 %status
}}
"""


def verify_code() -> str:
    """LLVM IR of the walk, the same for every pattern."""
    loads, stores = [], []
    for number, field in enumerate(_FIELDS):
        kind = "ptr" if field in _POINTERS else "i64"
        name = f"{field}_0" if field in _SAVED else field
        loads.append(f"  %{field}_at0 = getelementptr i64, ptr %call, i64 {number}")
        loads.append(f"  %{name} = load {kind}, ptr %{field}_at0")
        if field in _SAVED:
            stores.append(f"  store i64 %{field}_o, ptr %{field}_at0")
    return _IR.format(
        loads="\n".join(loads), stores="\n".join(stores), outside=OUTSIDE, dead=_DEAD,
        done=DONE, missing=MISSING, full=FULL, spent=SPENT,
    )  # fmt: skip


@cache
def _library() -> Library:
    from trident_query.llvm.kernels import cached_objects

    stored, _ = cached_objects().get(
        f"verify|{host().key()}", lambda: Stored(object_code(verify_code(), host()), {})
    )
    return Library(stored.code, ["verify"])


@cache
def load_walk() -> Callable[[int], int]:
    """The walk, compiled once, or loaded from the cache."""
    return _library().function("verify", ctypes.c_int64, ctypes.c_void_p)
