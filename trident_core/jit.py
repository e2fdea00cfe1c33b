"""numba, with a compile cache that can be trusted. Every kernel module takes `njit` from here.

numba's own cache is keyed by the file that defines a kernel, so it is stale when a helper in another file
changes. Here the cache folder's name is a hash of all kernel sources of the project: any edit starts afresh.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar, overload

import numba
from numba.core import config as numba_config

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


@overload
def njit(function: Kernel, /) -> Kernel: ...
@overload
def njit(**options: Any) -> Callable[[Kernel], Kernel]: ...
def njit(*args: Any, **options: Any) -> Any:
    """`numba.njit(cache=True, nogil=True, ...)`; use as a bare decorator or with options."""
    return numba.njit(*args, **{"cache": True, "nogil": True, **options})


def source_hash() -> str:
    """Hash of every Python source of the core and of the packages behind the entry points."""
    packages = {"trident_core"} | {
        point.value.partition(":")[0].split(".")[0] for point in entry_points(group="trident")
    }
    digest = hashlib.sha256(f"numba {numba.__version__}".encode())
    for package in sorted(packages):
        spec = importlib.util.find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for path in sorted(Path(folder).rglob("*.py")):
                source = path.read_bytes()
                if b"njit" in source or b"intrinsic" in source:
                    digest.update(source)
    return digest.hexdigest()[:16]


@cache
def cache_folder() -> Path:
    """Where compiled kernels are kept: `$NUMBA_CACHE_DIR`, else the user's cache folder, by source hash."""
    base = os.environ.get("NUMBA_CACHE_DIR")
    if not base:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        base = str(Path(home) / "trident" / "numba")
    return Path(base) / source_hash()


numba_config.CACHE_DIR = str(cache_folder())
