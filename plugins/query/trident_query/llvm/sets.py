"""Many patterns over a column at once: eight circuits share a block of values, and make a byte of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_query.limits import LimitError
from trident_query.llvm.code import RefusedError
from trident_query.llvm.columns import Columns, Layout, layout_of
from trident_query.llvm.engine import LlvmProgram
from trident_query.llvm.fields import Match, set_code
from trident_query.llvm.host import Host
from trident_query.program import Explanation, Question, check_set

#: Patterns whose circuits are one function: the bits of a byte.
TOGETHER: Final = 8


class OctetColumns(Columns):
    """The circuits of up to eight patterns."""

    def __init__(self, questions: Sequence[Question], host: Host) -> None:
        first = questions[0]
        flags = "".join(sorted(set(first.flags)))
        patterns = [question.pattern for question in questions]
        super().__init__(
            f"set|{flags}|{int(first.full)}{int(first.raw)}|{patterns!r}",
            lambda: first.glushkov,
            host,
            raw=first.raw,
        )
        self._questions = questions

    def _code(self, width: int, contiguous: bool) -> Match:
        automata = [question.glushkov for question in self._questions]
        return set_code(automata, width, self._host, contiguous=contiguous, raw=self._raw)


class LlvmSet:
    """Up to 64 patterns, matched at once. Capability SETS. For several threads at once.

    Where the circuits of eight do not fit the caps, each of them is answered as a program by itself.
    """

    def __init__(self, patterns: Sequence[str], *, flags: str, full: bool, raw: bool, host: Host) -> None:
        self.patterns = tuple(check_set(patterns))
        questions = [Question(pattern, flags, full, raw) for pattern in self.patterns]
        self._groups = [questions[at : at + TOGETHER] for at in range(0, len(questions), TOGETHER)]
        self._columns = [OctetColumns(group, host) for group in self._groups]
        self._programs = [[LlvmProgram(question, host) for question in group] for group in self._groups]
        self._apart: dict[int, str] = {}

    def match_set(self, column: NDArray[Any]) -> NDArray[np.uint64]:
        """u64[n]: bit i says whether pattern i occurs in the value."""
        layout = layout_of(column)
        octets = np.zeros((len(self._groups), layout.count), np.uint8)
        for number, row in enumerate(octets):
            if layout.count and not self._together(number, layout, row):
                for bit, program in enumerate(self._programs[number]):
                    row |= program.match(column).view(np.uint8) << np.uint8(bit)
        masks = np.zeros(layout.count, np.uint64)
        octets_of_masks = masks.view(np.uint8).reshape(-1, 8)
        for number, row in enumerate(octets):  # numpy takes four times as long for octets.T at once
            octets_of_masks[:, number] = row
        return masks

    def _together(self, number: int, layout: Layout, row: NDArray[np.uint8]) -> bool:
        """Answer eight patterns by their common code, if there can be one."""
        if layout.width == 0:
            return False
        try:
            self._columns[number].run(layout, None, row)
        except (RefusedError, LimitError) as error:
            self._apart[number] = error.message
            return False
        return True

    def explain(self) -> Explanation:
        """What was compiled for which eight patterns, and which were answered one by one, and why."""
        groups = []
        for number, group in enumerate(self._groups):
            made: Explanation = {"patterns": [q.pattern for q in group]}
            made["columns"] = self._columns[number].facts()
            if number in self._apart:
                made |= {"one by one": self._apart[number]}
                made["programs"] = [program.explain() for program in self._programs[number]]
            groups.append(made)
        return {"engine": "llvm", "patterns": list(self.patterns), "groups": groups}
