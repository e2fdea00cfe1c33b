"""numba, with a compile cache that can be trusted. Every kernel module takes `njit` from here.

numba's own cache is keyed by the file that defines a kernel, so it is stale when a helper or a constant in
another file changes. Here each package's kernels are cached in a folder whose name is a hash of all sources
they can depend on: any edit there starts afresh, and an edit elsewhere recompiles nothing.
"""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final, TypeVar, cast, overload

import numba
from numba.core import config as numba_config
from numba.core import event

from trident_core import compiling

Kernel = TypeVar("Kernel", bound=Callable[..., Any])

#: An i64 inside a kernel; numba types kernels, not mypy.
I64 = Any

_CORE: Final = "trident_core"
#: Kernels that allocate nothing need no reference counts, those that never divide by zero no check for it;
#: both cost time in loops of nanoseconds, and time to compile.
_BARE: Final[dict[str, Any]] = {"_nrt": False, "error_model": "numpy"}
#: Versions that `trident_core.kernel_compiler` was written for: it changes what is numba's own.
_KNOWN_NUMBA: Final = ("0.68.",)
_UNWRAPPED: Final[dict[str, Any]] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@cache
def how_to_compile(version: str) -> dict[str, Any]:
    """What makes this version of numba compile faster: nothing, where its internals are not known."""
    if not version.startswith(_KNOWN_NUMBA):
        return {}
    from trident_core.kernel_compiler import KernelCompiler

    return {"pipeline_class": KernelCompiler}


@overload
def njit(function: Kernel, /) -> Kernel: ...
@overload
def njit(**options: Any) -> Callable[[Kernel], Kernel]: ...
def njit(function: Any = None, /, **options: Any) -> Any:
    """`numba.njit(cache=True, nogil=True, ...)`; use as a bare decorator or with options."""

    def decorate(kernel: Kernel) -> Kernel:
        numba_config.CACHE_DIR = str(cache_folder(kernel.__module__.partition(".")[0]))
        made = numba.njit(**{"cache": True, "nogil": True, **how_to_compile(numba.__version__), **options})(
            kernel
        )
        compiling.made(kernel.__module__)
        return cast(Kernel, made)

    return decorate if function is None else decorate(function)


def njit_entry(function: Kernel) -> Kernel:
    """For kernels without allocation or division by zero, called from Python."""
    return njit(**_BARE)(function)


def njit_kernel(function: Kernel) -> Kernel:
    """The same, called from other kernels only, as a function of its own: rare, or large."""
    return njit(**_BARE, **_UNWRAPPED)(function)


def njit_inlined(function: Kernel) -> Kernel:
    """The same, called from other kernels only, and made part of them."""
    return njit(**_BARE, **_UNWRAPPED, forceinline=True)(function)


@cache
def cache_folder(package: str = _CORE) -> Path:
    """Where a package's compiled kernels are kept: `$NUMBA_CACHE_DIR`, else the user's cache, by hash."""
    base = os.environ.get("NUMBA_CACHE_DIR")
    if not base:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        base = str(Path(home) / "trident" / "numba")
    return Path(base) / f"{package}-{source_hash(package)}"


def source_hash(package: str) -> str:
    """Hash of the sources that kernels of `package` can depend on.

    These are its own, those of other plugins' packages that it imports, and those of the core that have to
    do with kernels (they say njit, intrinsic or dtype).
    """
    digest = hashlib.sha256(f"numba {numba.__version__} python {sys.version_info[:2]}".encode())
    plugins = {point.value.partition(":")[0].partition(".")[0] for point in entry_points(group="trident")}
    pending, seen = [package], {_CORE}
    while pending:
        name = pending.pop()
        if name in seen and name != package:
            continue
        seen.add(name)
        for source in _sources(name):
            if name != _CORE or any(word in source for word in (b"njit", b"intrinsic", b"dtype")):
                digest.update(source)
            pending += [other for other in plugins - seen if f"from {other}".encode() in source]
    if package != _CORE:
        digest.update(source_hash(_CORE).encode())
    return digest.hexdigest()[:16]


def _sources(package: str) -> Iterator[bytes]:
    """The Python sources of an installed package, in a fixed order; nothing for a script or a notebook."""
    try:
        spec = importlib.util.find_spec(package)
    except (ValueError, ModuleNotFoundError):  # __main__, or a module made by hand
        return
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        for path in sorted(Path(folder).rglob("*.py")):
            yield path.read_bytes()


#: A compilation makes millions of objects, few of them cycles: collecting as often as usual costs a sixth.
_COLLECT_EVERY: Final = 200_000


class _Listener(event.Listener):  # type: ignore[misc]  # numba has no types
    """Tells `trident_core.compiling` of kernels that the cache did not have; collects rarely meanwhile."""

    def __init__(self) -> None:
        self._depth = 0
        self._usual = gc.get_threshold()

    def on_start(self, happened: Any) -> None:
        if self._depth == 0:
            self._usual = gc.get_threshold()
            if 0 < self._usual[0] < _COLLECT_EVERY:  # 0: never
                gc.set_threshold(_COLLECT_EVERY, *self._usual[1:])
        self._depth += 1
        compiling.begin(happened.data["dispatcher"].py_func.__module__)

    def on_end(self, happened: Any) -> None:
        compiling.end(happened.data["dispatcher"].py_func.__module__)
        self._depth -= 1
        if self._depth == 0:
            gc.set_threshold(*self._usual)


event.register("numba:compile", _Listener())
