"""That kernels are being compiled, for whoever waits: a command shows it, a library stays silent.

Imports nothing, so that a command can ask to be told before numba is loaded, or without ever loading it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple


class Compiling(NamedTuple):
    """`done` kernels compiled in this process, of about `known` that the packages concerned have (not all may
    be needed, and one may be needed for two kinds of arrays). `busy`: False when nothing is compiled now."""

    package: str
    done: int
    known: int
    busy: bool


#: Called when the first kernel of a process is about to be compiled, and whenever one has been.
Notice = Callable[[Compiling], None]

_notices: Final[list[Notice]] = []
_known: Final[dict[str, int]] = {}  # kernels by package
_concerned: Final[set[str]] = set()
_depth = _done = 0  # a kernel's compilation contains those of the kernels it calls


def tell(notice: Notice) -> None:
    """From now on `notice` is told."""
    _notices.append(notice)


def compiled() -> int:
    """How many kernels this process has compiled, because the cache did not have them."""
    return _done


def made(module: str) -> None:
    """A kernel was defined in `module` (called by `trident_core.jit`)."""
    package = module.partition(".")[0]
    _known[package] = _known.get(package, 0) + 1


def begin(module: str) -> None:
    """A kernel of `module` is about to be compiled; those of others than ours are nothing to us."""
    global _depth
    package = module.partition(".")[0]
    if package in _known:
        _depth += 1
        if package not in _concerned:
            _concerned.add(package)
            _say(package)


def end(module: str) -> None:
    """A kernel of `module` was compiled, or could not be."""
    global _depth, _done
    package = module.partition(".")[0]
    if package in _known:
        _depth, _done = max(0, _depth - 1), _done + 1
        _say(package)


def _say(package: str) -> None:
    known = sum(_known[name] for name in _concerned)
    for notice in _notices:
        notice(Compiling(package, _done, max(known, _done), _depth > 0))
