"""Compiled functions by what they were made from: in memory for as long as they are used, then on disk."""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from trident_query.llvm.host import Host
from trident_query.llvm.loader import Library
from trident_query.llvm.objects import ObjectCache, Stored, default_folder

#: Libraries that stay in memory although no program refers to them.
LIBRARIES_MAX: Final = 256
#: Bytes of their objects.
LIBRARY_BYTES_MAX: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Kernel:
    """A function in memory. `library` keeps it there: hold the kernel while you call.

    `source`: where its code came from, "disk" or "compiled".
    """

    library: Library
    call: Callable[..., int]
    facts: dict[str, Any]
    source: str


class Kernels:
    """The least recently used go first; their code is unmapped when the last program that has it is gone."""

    def __init__(self, objects: ObjectCache, count_max: int = LIBRARIES_MAX) -> None:
        self.objects, self.count_max = objects, count_max
        self._kernels: OrderedDict[str, Kernel] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(
        self, key: str, host: Host, name: str, arguments: tuple[Any, ...], make: Callable[[], Stored]
    ) -> Kernel:
        """The function `name` of the code that `make` makes, or that is kept under `key` for `host`.

        Several threads may ask for the same at once: one result is kept. What `make` raises goes through.
        """
        key = f"{name}|{key}|{host.key()}"
        with self._lock:
            known = self._kernels.get(key)
            if known is not None:
                self._kernels.move_to_end(key)
                return known
        stored, found = self.objects.get(key, make)
        library = Library(stored.code, [name])
        call = library.function(name, ctypes.c_int64, *arguments)
        made = Kernel(library, call, stored.facts, "disk" if found else "compiled")
        with self._lock:
            kept = self._kernels.setdefault(key, made)
            if kept is made:
                self._bytes += library.bytes
            while self._kernels and (len(self._kernels) > self.count_max or self._bytes > LIBRARY_BYTES_MAX):
                _, dropped = self._kernels.popitem(last=False)
                self._bytes -= dropped.library.bytes
        return kept

    def clear(self) -> None:
        """Forget all; programs keep theirs."""
        with self._lock:
            self._kernels.clear()
            self._bytes = 0


@cache
def cached_objects() -> ObjectCache:
    """The cache on disk of this process."""
    return ObjectCache(default_folder())


@cache
def kernels() -> Kernels:
    """The functions in memory of this process."""
    return Kernels(cached_objects())
