"""How the simulator's kernel is compiled.

Its functions allocate nothing, so they need no reference counts; all but one are called from each other
only, so they need no wrappers; and they divide by numbers that are never 0. All this is time to compile. So
are integers of many sizes and literals, each of which is one more variant: everything passed between them
is an i64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from trident_core.jit import njit

#: An i64 inside a kernel; numba types kernels, not mypy.
I64 = Any

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS: Final[dict[str, Any]] = {"_nrt": False, "error_model": "numpy"}


def njit_entry(function: Function) -> Function:
    """Called from Python."""
    return cast(Function, njit(**_OPTIONS)(function))


def njit_kernel(function: Function) -> Function:
    """Called from other kernels only."""
    return cast(Function, njit(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function))


def njit_inlined(function: Function) -> Function:
    """Copied into the kernels that call it, so that a literal argument costs no variant."""
    return cast(Function, njit(**_OPTIONS, inline="always")(function))
