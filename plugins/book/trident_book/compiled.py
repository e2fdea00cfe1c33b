"""How the kernels of this package are compiled.

They allocate nothing, so they need no reference counts (which would cost more than the book); only some are
called from Python and need a wrapper; none divides by zero. All that is also time to compile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

from trident_core.jit import njit

Function = TypeVar("Function", bound=Callable[..., Any])

_OPTIONS: Final[dict[str, Any]] = {"_nrt": False, "error_model": "numpy"}


def njit_entry(function: Function) -> Function:
    """Called from Python."""
    return cast(Function, njit(**_OPTIONS)(function))


def njit_kernel(function: Function) -> Function:
    """Called from other kernels only, as a function of its own: rare, or large."""
    return cast(Function, njit(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function))


def njit_inlined(function: Function) -> Function:
    """Called from other kernels only, and made part of them."""
    options = {**_OPTIONS, "forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Function, njit(**options)(function))
