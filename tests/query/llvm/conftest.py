"""Fixtures of the tests of compiled patterns: a cache of their own, both widths of vector."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from trident_query.llvm import kernels
from trident_query.llvm.engine import LlvmQuery
from trident_query.llvm.host import Host, host, narrow
from trident_query.reference import ReferenceQuery


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("llvm-objects")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIDENT_LLVM_CACHE", str(folder))
        kernels.cached_objects.cache_clear()
        kernels.kernels.cache_clear()
        yield folder
    kernels.cached_objects.cache_clear()
    kernels.kernels.cache_clear()


@pytest.fixture(scope="session")
def hosts() -> list[Host]:
    """This CPU, and what any CPU can do."""
    return [host(), narrow(host())]


@pytest.fixture(scope="session")
def llvm() -> LlvmQuery:
    return LlvmQuery()


@pytest.fixture(scope="session")
def reference() -> ReferenceQuery:
    return ReferenceQuery()


@pytest.fixture
def memory_end() -> Iterator[object]:
    """A function: bytes -> an array of them, the last one right before memory that cannot be read."""
    import ctypes
    import mmap

    import numpy as np

    libc = ctypes.CDLL(None, use_errno=True)
    mapped: list[tuple[int, int]] = []
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]

    def place(data: bytes) -> np.ndarray:
        size = -(-max(len(data), 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        address = libc.mmap(None, size + mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
        assert address not in (None, ctypes.c_void_p(-1).value)
        mapped.append((address, size + mmap.PAGESIZE))
        assert libc.mprotect(ctypes.c_void_p(address + size), mmap.PAGESIZE, 0) == 0
        whole = np.frombuffer((ctypes.c_uint8 * size).from_address(address), np.uint8)
        whole[size - len(data) :] = np.frombuffer(data, np.uint8)
        return whole[size - len(data) :]

    yield place
    for address, size in mapped:
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))
