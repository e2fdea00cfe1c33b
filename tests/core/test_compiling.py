"""What a user is told while kernels compile: on a terminal, beside a bar, and elsewhere."""

from __future__ import annotations

import io
import sys

import pytest

from trident_core.cli.waiting import Waiting
from trident_core.compiling import Compiling


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


BEGIN = Compiling("some_package", 0, 7, True)
NEXT = Compiling("some_package", 3, 7, True)
END = Compiling("some_package", 7, 7, False)


def test_a_terminal_has_one_line_that_counts_and_then_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    waiting = Waiting()
    for news in (BEGIN, NEXT, END):
        waiting(news)
    lines = sys.stderr.getvalue().split("\r\x1b[K")  # type: ignore[attr-defined]
    assert lines[1].startswith("compiling kernels, once: some_package, 0 of about 7, 0 s")
    assert lines[2].startswith("compiling kernels, once: some_package, 3 of about 7")
    assert lines[3:] == [""]


def test_a_bar_that_has_the_terminal_shows_it_as_its_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    waiting, notes = Waiting(), []
    with waiting.shown_by(notes.append):
        waiting(NEXT)
        waiting(END)
    assert notes[0].startswith("compiling kernels, once: some_package, 3 of about 7")
    assert notes[1:] == [""]
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


def test_elsewhere_one_line_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    waiting = Waiting()
    for news in (BEGIN, NEXT, END, BEGIN):
        waiting(news)
    assert sys.stderr.getvalue() == "compiling kernels, once; `trident warm` compiles all\n"


def test_a_reader_that_has_gone_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = io.StringIO()
    gone.close()
    monkeypatch.setattr(sys, "stderr", gone)
    waiting = Waiting()
    waiting(BEGIN)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    waiting(BEGIN)
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]  # its one line was tried
