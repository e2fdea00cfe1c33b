"""Row patterns as deterministic automata, made step by step as the data ask for it.

A configuration is what a search through one partition remembers, in the order of preference: threads
(instructions that wait for a row), each with the row that its match began at, and matches that are found but
still hang on a thread before them. A row makes a new configuration of it:

  * a thread whose variable the row satisfies goes on; if it reaches the pattern's end, its match is found and
    everything after it is dropped, being less preferred or inside the match;
  * a thread that stands at the same instruction as one before it is dropped: it can only do what that one
  does; * matches with no thread before them are final.

So a configuration has at most one thread for each instruction, and the search is linear in the rows without
ever going back, for find-all too. Rows where matches began are kept in registers; what is the same but for
them is the same state.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from trident_query.sequence.code import Again, At, Enter, Found, Instruction, Jump, TakeRow, Try
from trident_query.sequence.pattern import ANY
from trident_query.sequence.question import SequenceError

#: Caps; errors name them.
STATES_MAX: Final = 1 << 15
OPERATIONS_MAX: Final = (1 << 15) - 1
CLOSURE_MAX: Final = 1 << 16
GROUPS_MAX: Final = 64
BUNDLES_MAX: Final = 16

#: Stands in a closure for the end of the pattern.
FOUND: Final = -1

#: A thread (instruction, group: the number of its start register) or a bundle of found matches (-1, its
#: number).
Item = tuple[int, int]


class Threads:
    """What follows what in a pattern's program. `bits`: variable -> the bit that says a row satisfies it."""

    def __init__(self, program: Sequence[Instruction], bits: dict[str, int]) -> None:
        self.program, self.bits = program, bits
        self._closures: dict[tuple[int, bool, bool], tuple[int, ...]] = {}
        self.uses_start = any(isinstance(step, At) and not step.end for step in program)
        self.uses_end = any(isinstance(step, At) and step.end for step in program)

    def satisfied(self, where: int, bits: int) -> bool:
        step = self.program[where]
        if not isinstance(step, TakeRow):
            return False  # waits for the end of the partition
        bit = -1 if step.name == ANY else self.bits.get(step.name, -1)
        return bit < 0 or bool(bits >> bit & 1)

    def closure(self, where: int, *, start: bool = False, end: bool = False) -> tuple[int, ...]:
        """The instructions that wait for a row, reached from `where` without one, in the order of preference;
        FOUND, the last if it is there, where the pattern ends. At waits for the partition's end."""
        key = (where, start, end)
        if key not in self._closures:
            self._closures[key] = tuple(self._reached(*key))
        return self._closures[key]

    def _reached(self, where: int, start: bool, end: bool) -> Iterator[int]:
        pending: list[tuple[int, frozenset[int]]] = [(where, frozenset())]
        seen: set[tuple[int, frozenset[int]]] = set()
        given: set[int] = set()
        while pending:
            here = pending.pop()
            if here in seen:
                continue
            seen.add(here)
            if len(seen) > CLOSURE_MAX:
                raise SequenceError(
                    f"more than {CLOSURE_MAX:,} ways without a row, the cap on nested empty loops"
                )
            where, entered = here
            step = self.program[where]
            if isinstance(step, Found):
                yield FOUND
                return
            if isinstance(step, TakeRow) or (isinstance(step, At) and step.end and not end):
                if where not in given:
                    given.add(where)
                    yield where
            elif isinstance(step, Try):
                pending += [(step.second, entered), (step.first, entered)]
            elif isinstance(step, Jump):
                pending.append((step.to, entered))
            elif isinstance(step, Enter):
                pending.append((where + 1, entered | {step.loop}))
            elif isinstance(step, Again):
                pending.append((where + 1 if step.loop in entered else step.head, entered))
            elif step.end or start:
                pending.append((where + 1, entered))


@dataclass(frozen=True, slots=True)
class Operation:
    """What a transition does with the registers. Registers are named ("group", n) and ("bundle", n); the row
    at hand is group -1. `emits`: the groups whose match is final, or -2 for an empty match at this row, or
    ("bundle", n). `groups`: for each new group its old one. `bundles`: for each new bundle what it is made
    of. `drops`: bundles that a match with an earlier start has made void."""

    emits: tuple[int | tuple[str, int], ...] = ()
    groups: tuple[int, ...] = ()
    bundles: tuple[tuple[int | tuple[str, int], ...], ...] = ()
    drops: tuple[int, ...] = ()


NOTHING: Final = Operation()
EMPTY_MATCH: Final = -2


@dataclass(slots=True)
class Configurations:
    """States, numbered as they are met. State 0: no row of the partition was seen yet."""

    threads: Threads
    states: list[tuple[Item, ...]] = field(default_factory=lambda: [()])
    numbers: dict[tuple[Item, ...], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.threads.uses_start:
            self.states.append(())
        self.numbers[()] = len(self.states) - 1

    def step(self, state: int, bits: int) -> tuple[int, Operation]:
        """The state after a row, and what to do with the registers."""
        first = state == 0
        items: list[Item | tuple[str, int]] = list(self.states[state])
        fresh = 1 + max((group for where, group in self.states[state] if where >= 0), default=-1)
        waiting = {where for where, _ in self.states[state] if where >= 0}
        for where in self.threads.closure(0, start=first):
            if where == FOUND:
                items.append(("empty", 0))
            elif where not in waiting:
                items.append((where, fresh))
        return self._advance(items, fresh, lambda where: self._after(where, bits))

    def _after(self, where: int, bits: int) -> tuple[int, ...]:
        return self.threads.closure(where + 1) if self.threads.satisfied(where, bits) else ()

    def finish(self, state: int) -> Operation:
        """What the end of the partition does: threads that wait for it go on, all others end."""

        def after(where: int) -> tuple[int, ...]:
            if isinstance(self.threads.program[where], TakeRow):
                return ()
            return tuple(w for w in self.threads.closure(where + 1, end=True) if w == FOUND)

        return self._advance(list(self.states[state]), GROUPS_MAX + 1, after)[1]

    def _advance(self, items, fresh, after) -> tuple[int, Operation]:  # type: ignore[no-untyped-def]
        """Move every item on. `after(instruction)`: where its thread goes, or nothing."""
        made: list[Item | tuple[str, object]] = []
        seen: set[int] = set()
        drops: list[int] = []
        dead = False
        for where, group in items:
            if dead:
                drops += [group] if where != "empty" and where < 0 else []
                continue
            if where == "empty":
                made.append(("match", EMPTY_MATCH))
                continue
            if where < 0:
                made.append(("match", ("bundle", group)))
                continue
            found = False
            for target in after(where):
                if target == FOUND:
                    found = True
                elif target not in seen:
                    seen.add(target)
                    made.append((target, group))
            if found:
                made.append(("match", -1 if group == fresh else group))
                dead = True
        return self._numbered(made, fresh, tuple(drops))

    def _numbered(self, made, fresh, drops) -> tuple[int, Operation]:  # type: ignore[no-untyped-def]
        """Number groups and bundles anew; matches in front are final."""
        first = next((at for at, (where, _) in enumerate(made) if where != "match"), len(made))
        emits = tuple(what for _, what in made[:first])
        groups: dict[int, int] = {}
        bundles: list[list[object]] = []
        state: list[Item] = []
        open_bundle = False
        for where, what in made[first:]:
            if where == "match":
                if not open_bundle:
                    bundles.append([])
                    state.append((-1, len(bundles) - 1))
                open_bundle = True
                bundles[-1].append(what)
                continue
            open_bundle = False
            state.append((where, groups.setdefault(what, len(groups))))
        if len(groups) > GROUPS_MAX or len(bundles) > BUNDLES_MAX:
            raise SequenceError(
                f"more than {GROUPS_MAX} open starts or {BUNDLES_MAX} bundles, the cap on states"
            )
        sources = tuple(-1 if old == fresh else old for old in groups)
        operation = Operation(emits, sources, tuple(map(tuple, bundles)), drops)  # type: ignore[arg-type]
        return self._state(tuple(state)), operation

    def _state(self, items: tuple[Item, ...]) -> int:
        if items not in self.numbers:
            if len(self.states) >= STATES_MAX:
                raise SequenceError(
                    f"more than {STATES_MAX:,} states, the cap on sequences",
                    hint="shorten repeats, or use fewer variables that the same row can satisfy",
                )
            self.numbers[items] = len(self.states)
            self.states.append(items)
        return self.numbers[items]


@dataclass(slots=True)
class Anchored:
    """The same for one start alone: a state is the list of threads. 0: dead."""

    threads: Threads
    states: list[tuple[int, ...]] = field(default_factory=lambda: [()])
    numbers: dict[tuple[int, ...], int] = field(default_factory=lambda: {(): 0})

    def start(self, *, first: bool) -> tuple[int, bool]:
        """The state before the first row, and whether the empty match is found there."""
        return self._made(self.threads.closure(0, start=first))

    def step(self, state: int, bits: int) -> tuple[int, bool]:
        """The state after a row, and whether a match is found that ends with it."""
        reached: dict[int, None] = {}
        for where in self.states[state]:
            if self.threads.satisfied(where, bits):
                targets = self.threads.closure(where + 1)
                reached.update(dict.fromkeys(targets))
                if targets[-1:] == (FOUND,):
                    break
        return self._made(tuple(reached))

    def finish(self, state: int) -> bool:
        """Is a match found at the partition's end that was not before?"""
        return any(
            not isinstance(self.threads.program[where], TakeRow)
            and FOUND in self.threads.closure(where + 1, end=True)
            for where in self.states[state]
        )

    def _made(self, reached: tuple[int, ...]) -> tuple[int, bool]:
        found = reached[-1:] == (FOUND,)
        threads = reached[:-1] if found else reached
        if threads not in self.numbers:
            if len(self.states) >= STATES_MAX:
                raise SequenceError(f"more than {STATES_MAX:,} states, the cap on sequences")
            self.numbers[threads] = len(self.states)
            self.states.append(threads)
        return self.numbers[threads], found


def label(threads: Threads, rows: Sequence[int], *, first: bool, last: bool) -> list[int]:
    """The instruction that took each row of a match, by the rows' bits: the preferred way that ends with the
    last.

    `first`, `last`: does the match begin, end with its partition? Backwards, which threads can still reach
    the end; then forwards the first that can. Empty if there is no such way. Linear in rows times
    instructions.
    """
    n = len(rows)
    waiting = [where for where, step in enumerate(threads.program) if isinstance(step, TakeRow)]
    alive: list[set[int]] = [set() for _ in range(n + 1)]  # alive[i]: threads that match rows[i:] exactly
    for at in range(n - 1, -1, -1):
        for where in waiting:
            if threads.satisfied(where, rows[at]):
                targets = threads.closure(where + 1, end=last and at == n - 1)
                done = FOUND in targets if at == n - 1 else any(target in alive[at + 1] for target in targets)
                if done:
                    alive[at].add(where)
    taken: list[int] = []
    targets = threads.closure(0, start=first)
    for at in range(n):
        where = next((target for target in targets if target in alive[at]), -1)
        if where < 0:
            return []
        taken.append(where)
        targets = threads.closure(where + 1)
    return taken
