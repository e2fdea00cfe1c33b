"""Properties held against random examples: the same in each run, and a failing one is met again by the
command that the failure prints.

That command names the example itself (`--example`): hypothesis also draws numbers that it finds in the source
of loaded modules, so that a case that runs alone may be given other examples than among all.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from trident_conformance import evidence, streams
from trident_core.dtypes import Events

#: Examples of each property that does not say how many it is worth, and the most with --quick.
EXAMPLES: Final = 60
EXAMPLES_QUICK: Final = 12
#: Seconds in which rows are left out of a failing input; with --quick.
SHRINKING_S: Final = 20.0
SHRINKING_QUICK_S: Final = 5.0

_BLOB: Final = re.compile(r"reproduce_failure\('([^']+)', b'([^']+)'\)")
_VERSION: Final = re.compile(r"\d+(\.\w+)+")

_failed: list[tuple[BaseException, Callable[[Events], None], Events]] = []


def by_rows(check: Callable[[Events], None], events: Events) -> None:
    """`check(events)` within a property: when it fails in the end, `prove` leaves out rows while it does."""
    try:
        check(events)
    except Exception as error:
        _failed[:] = [(error, check, events)]
        raise


@dataclass(frozen=True)
class Prover:
    """`prover(property, **strategies)`: hold a property against random examples, `examples` of them in a full
    run. The options of the same names go before: how many, with which seed, and which one first."""

    quick: bool = False
    examples: int | None = None
    seed: int | None = None
    example: str | None = None

    def __call__(self, check: Callable[..., None], *, examples: int | None = None, **strategies: Any) -> None:
        _failed.clear()
        try:
            if self.example is not None:
                self._once_more(self._test(check, 1, strategies))
            self._test(check, self._count(examples), strategies)()
        except Exception as error:
            _note_the_example(error)
            self._shrink(error)
            raise

    def _count(self, examples: int | None) -> int:
        full = examples or EXAMPLES
        return self.examples or (min(full, EXAMPLES_QUICK) if self.quick else full)

    def _test(self, check: Callable[..., None], count: int, strategies: dict[str, Any]) -> Any:
        from hypothesis import HealthCheck, Phase, given, seed, settings

        # Shrinking a failure may take minutes: worth it to mend an engine, not for a quick look.
        phases = [Phase.explicit, Phase.generate] if self.quick else list(Phase)
        chosen = settings(
            max_examples=count,
            deadline=None,
            derandomize=self.seed is None,
            database=None,
            phases=phases,
            print_blob=True,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        )
        test = chosen(given(**strategies)(check))
        return test if self.seed is None else seed(self.seed)(test)

    def _once_more(self, test: Any) -> None:
        """The example of --example; when it passes now, the others are next."""
        from hypothesis import __version__, reproduce_failure
        from hypothesis.errors import DidNotReproduce, InvalidArgument

        version, _, blob = str(self.example).partition(":")
        if not (_VERSION.fullmatch(version) and blob.isascii()):
            pytest.fail(f"--example {self.example}: not an example that a failure printed", pytrace=False)
        if version != __version__:
            pytest.fail(
                f"--example is of hypothesis {version}, and here is {__version__}: leave it out, or install "
                "that version",
                pytrace=False,
            )
        try:
            reproduce_failure(version, blob.encode())(test)()
        except DidNotReproduce:
            evidence.meet_again(None)
        except InvalidArgument as error:
            pytest.fail(f"--example {self.example}: {error}", pytrace=False)
        except Exception:
            evidence.meet_again(self.example)
            raise

    def _shrink(self, error: Exception) -> None:
        """Raise what the smallest part of the rows raises, where `error` came from rows."""
        if not _failed or _failed[0][0] is not error:
            return
        _, check, events = _failed.pop()
        part = streams.smallest(check, events, SHRINKING_QUICK_S if self.quick else SHRINKING_S, type(error))
        check(part)  # raises; if it does not, once in a while, `error` stands


def _note_the_example(error: Exception) -> None:
    """Take what hypothesis says of how to meet its example again out of the words of the failure."""
    notes: list[str] = getattr(error, "__notes__", [])
    for note in notes:
        if found := _BLOB.search(note):
            evidence.meet_again(f"{found[1]}:{found[2]}")
    if notes:
        error.__notes__ = [note for note in notes if not _BLOB.search(note)]
