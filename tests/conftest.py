"""Fixtures that all tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# A shell that starts the tests in the background has them ignore SIGINT, and a process hands that on to its
# children; the tests of Ctrl-C need it as it is in a terminal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _handlers_of_signals() -> Iterator[None]:
    """A command that ran inside the test's process leaves Ctrl-C to the system, which would end the tests."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        if signal.getsignal(number) is not handler:
            signal.signal(number, handler)


ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Callable[..., Path]:
    """`shared("data", "pcap")` is a path in the folder of data that others made; skips where it is absent.

    The folder is `$TRIDENT_SHARED`, else `shared` beside the checkout. See tests/README.md.
    """
    base = Path(os.environ.get("TRIDENT_SHARED") or ROOT.parent / "shared")

    def locate(*parts: str) -> Path:
        path = base.joinpath(*parts)
        if not path.exists():
            pytest.skip(f"{'/'.join(parts)} is not in the folder of shared data (set TRIDENT_SHARED)")
        return path

    return locate
