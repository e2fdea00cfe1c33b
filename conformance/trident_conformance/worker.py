"""One process of `trident conform`: collects the cases, runs those that it is told to, says how they ended.

Started by `trident_conformance.spread` as `python -m trident_conformance.worker ARGUMENT…` (pytest's). Orders
come on standard input, a line of numbers of cases each; answers go to standard output, a line of JSON each:
all cases, once they are collected; the number of each case that begins; how each ended. What pytest and the
engines print goes to standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, TextIO

import pytest

from trident_conformance.matrix import Matrix


class Worker:
    """A pytest plugin whose loop takes orders. `matrix` knows the cases, by node id."""

    def __init__(self, orders: TextIO, answers: TextIO, matrix: Matrix) -> None:
        self._orders, self._answers, self._matrix = orders, answers, matrix

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        if session.testsfailed:
            return None  # pytest says what could not be collected
        items = [item for item in session.items if item.nodeid in self._matrix.cases]
        cases = [self._matrix.cases[item.nodeid] for item in items]
        declared = [[*engine, abilities] for engine, abilities in self._matrix.declared.items()]
        notes = [[*engine, said] for engine, said in self._matrix.notes.items()]
        self._say({"cases": [asdict(case) for case in cases], "declared": declared, "notes": notes})
        for line in self._orders:
            numbers = [int(word) for word in line.split()]
            for number, after in zip(numbers, [*numbers[1:], -1], strict=True):
                self._say({"begin": number})
                # Behind the last of an order "comes" the folder of its file: what the cases of a file share
                # is taken down, what those of a session share lives on to the next order.
                following = items[after] if after >= 0 else _folder(items[number])
                session.config.hook.pytest_runtest_protocol(item=items[number], nextitem=following)
                self._say({"end": number, "case": asdict(cases[number])})
        return True

    def _say(self, what: dict[str, Any]) -> None:
        self._answers.write(json.dumps(what) + "\n")
        self._answers.flush()


def _folder(item: pytest.Item) -> Any:
    module = item.getparent(pytest.Module)
    return module.parent if module else None


def main(arguments: Sequence[str]) -> int:
    """Returns pytest's exit status. The files 0 and 1 are taken away from whatever runs in here."""
    orders, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    matrix = Matrix()
    return int(pytest.main(list(arguments), plugins=[matrix, Worker(orders, answers, matrix)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
