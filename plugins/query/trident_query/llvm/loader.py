"""Objects -> callable functions in memory, that can be unloaded again.

Each object becomes a library of an LLJIT session, which maps its code readable and executable, never
writable as well. LLVM keeps about 9 KB of every library that ever was in a session, so a session serves
`LIBRARIES_MAX` of them and is closed with the last one: memory does not grow with the number of patterns.
"""

from __future__ import annotations

import ctypes
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import llvmlite.binding as llvm

#: Libraries of one LLJIT session.
LIBRARIES_MAX: Final = 128

_lock: Final = threading.Lock()
_numbers: Final = itertools.count()


class _Session:
    """An LLJIT session. Closed by the garbage collector when no library refers to it any more."""

    current: _Session | None = None

    def __init__(self) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.jit = llvm.create_lljit_compiler()
        self.libraries = 0

    @classmethod
    def with_room(cls) -> _Session:
        with _lock:
            if cls.current is None or cls.current.libraries >= LIBRARIES_MAX:
                cls.current = cls()
            cls.current.libraries += 1
            return cls.current


class Library:
    """Linked code. Its functions may be called from any thread, without the GIL, until `close`.

    A caller holds a reference to the library while it calls: the code is unmapped with the last one.
    """

    def __init__(self, code: bytes, names: Sequence[str]) -> None:
        builder = llvm.JITLibraryBuilder().add_object_img(code)
        for name in names:
            builder.export_symbol(name)
        session = _Session.with_room()
        # Library names cannot be used twice in a session.
        tracker = builder.link(session.jit, f"trident-{next(_numbers)}")
        self._addresses = {name: tracker[name] for name in names}
        self._unload = weakref.finalize(self, _unload, tracker, session)
        self._unload.atexit = False  # the process goes, and its memory with it
        self.bytes = len(code)

    def function(self, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
        """The exported function `name`, as a ctypes function pointer (which releases the GIL)."""
        return ctypes.CFUNCTYPE(result, *arguments)(self._addresses[name])

    def close(self) -> None:
        """Unmap the code. Idempotent; no function of it may be running."""
        self._unload()


def _unload(tracker: Any, session: _Session) -> None:
    """Unmap a library; its session is referred to until that is done.

    May be called by the garbage collector, anywhere: takes no lock but llvmlite's own, which guards LLVM.
    """
    tracker.close()
