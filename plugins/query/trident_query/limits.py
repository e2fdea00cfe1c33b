"""Every cap of the pattern compiler, and the error that names the one a pattern passes."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from trident_core.errors import PatternError


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps. The first four are of the dialect, the same for every engine; the others of compiled automata.

    pattern_bytes: length of a pattern in UTF-8. repeat: the greatest n and m of {n,m}. depth: nesting of
    groups. nodes: states of Thompson's automaton, repeats written out. positions: Glushkov positions (bytes
    read). edges: entries of their follow lists. states: of a DFA, before it is minimised. table_bytes: of all
    tables of a program. seconds: for one step of compilation (wall clock).
    """

    pattern_bytes: int = 1 << 20
    repeat: int = 1_000
    depth: int = 150
    nodes: int = 100_000
    positions: int = 120_000
    edges: int = 4_000_000
    states: int = 32_768
    table_bytes: int = 32 << 20
    seconds: float = 10.0


DEFAULT: Final = Limits()

#: cap -> (what it counts, what to do).
_CAPS: Final[dict[str, tuple[str, str]]] = {
    "pattern_bytes": ("bytes of pattern", "split it into several patterns"),
    "repeat": ("repeats of one item", "nest two: (?:a{1000}){3}"),
    "depth": ("nested groups", "take out groups that do nothing"),
    "nodes": ("states of its automaton", "lower the counts of bounded repeats, or split the alternation"),
    "positions": ("bytes to read", "lower the counts of bounded repeats, or split the alternation"),
    "edges": ("steps between bytes", "lower the counts of repeats of what may be empty"),
    "states": (
        "states of a DFA",
        "anchor it with ^, lower the count of a repeat, or use the glushkov or the reference engine",
    ),
    "table_bytes": ("bytes of tables", "split the alternation, or use the glushkov or the reference engine"),
    "seconds": ("seconds to compile", "simplify it, or use the glushkov or the reference engine"),
}


class LimitError(PatternError):
    """A pattern within the dialect that passes a cap of it, or of an engine.

    `cap` is the name of a field of `Limits` (or of an engine's own cap), `limit` the cap, `value` what was
    needed, as far as it was counted (a lower bound), `part` the sub-pattern to blame, as written.
    """

    def __init__(
        self,
        cap: str,
        value: float,
        limit: float,
        *,
        pattern: str,
        position: int = 0,
        part: str = "",
        what: str = "",
        hint: str = "",
    ) -> None:
        known, advice = _CAPS.get(cap, (cap, ""))
        shown = part if len(part) <= 60 else f"{part[:57]}…"
        blamed = f", because of {shown}" if shown and part != pattern else ""
        super().__init__(
            f"the pattern needs more than {limit:,} {what or known} (at least {value:,}){blamed}:"
            f" cap {cap!r}",
            pattern=pattern,
            position=position,
            hint=hint or advice,
            construct=cap,
        )
        self.cap, self.value, self.limit, self.part = cap, value, limit, part


@dataclass(slots=True)
class Blame:
    """What a compiler's error says of the pattern: its text, and the sub-pattern that costs most."""

    pattern: str = ""
    part: str = ""
    position: int = 0

    def error(self, cap: str, value: float, limit: float, *, what: str = "", hint: str = "") -> LimitError:
        return LimitError(
            cap,
            value,
            limit,
            pattern=self.pattern,
            position=self.position,
            part=self.part,
            what=what,
            hint=hint,
        )


@dataclass(slots=True)
class Clock:
    """The cap on time: `check` now and then, from loops. Raises LimitError when the time is over."""

    limits: Limits
    blame: Blame
    began: float = field(default_factory=time.perf_counter)

    def check(self) -> None:
        spent = time.perf_counter() - self.began
        if spent > self.limits.seconds:
            raise self.blame.error("seconds", round(spent, 1), self.limits.seconds)
