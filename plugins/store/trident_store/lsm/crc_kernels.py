"""CRC-32C inside kernels: by the processor's instruction in three lanes, else by tables.

Bytes stand at an address, so that a kernel may look at any part of any buffer or mapped file. The lanes are
put together by multiplying with powers of x, by tables (M. Adler, crc32c.c). The caller keeps the memory.
"""

from __future__ import annotations

from typing import Any, Final

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import config
from numba.extending import intrinsic
from numpy.typing import NDArray

from trident_core.jit import njit
from trident_store.lsm.lookup import load_u8, load_u32, load_u64

_POLYNOMIAL: Final = 0x82F63B78
_LONG: Final = 2_048  # bytes of a lane
_SHORT: Final = 128


def has_instruction() -> bool:
    """May kernels use SSE4.2's instruction? They are compiled for this processor, unless numba was told
    another one."""
    if config.CPU_NAME or config.CPU_FEATURES is not None:
        return False
    return bool(llvm.get_host_cpu_features().get("sse4.2", False))


def _byte_tables() -> NDArray[np.uint32]:
    """u32[8, 256]: what a byte that stands k bytes before the end of a word does to the CRC."""
    tables = np.zeros((8, 256), np.uint32)
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        tables[0, byte] = crc
    for k in range(1, 8):
        before = tables[k - 1]
        tables[k] = (before >> np.uint32(8)) ^ tables[0, before & np.uint32(255)]
    return tables


def _shift_tables(nbytes: int) -> NDArray[np.uint32]:
    """u32[4, 256]: the CRC of each byte of a CRC, with so many zeros behind it."""
    tables = np.zeros((4, 256), np.uint32)
    basis = np.uint32(1) << np.arange(32, dtype=np.uint32)
    for _ in range(nbytes):
        basis = (basis >> np.uint32(8)) ^ _BYTES[0, basis & np.uint32(255)]
    for byte in range(256):
        for bit in range(8):
            if byte >> bit & 1:
                tables[:, byte] ^= basis[bit::8]
    return tables


_BYTES: Final = _byte_tables()
_AFTER_LONG, _AFTER_SHORT = _shift_tables(_LONG), _shift_tables(_SHORT)


@intrinsic  # type: ignore[untyped-decorator]  # numba has no types
def _crc_word(typingctx: Any, crc: Any, word: Any) -> Any:
    """The state after a u64, by the instruction."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i64 = ir.IntType(64)
        kind = ir.FunctionType(i64, [i64, i64])
        function = builder.module.declare_intrinsic("llvm.x86.sse42.crc32.64.64", (), kind)
        return builder.call(function, args)

    return types.uint64(types.uint64, types.uint64), codegen


@njit
def _shifted(tables: Any, crc: Any) -> Any:
    mask = np.uint64(255)
    return np.uint64(
        tables[0, crc & mask]
        ^ tables[1, (crc >> np.uint64(8)) & mask]
        ^ tables[2, (crc >> np.uint64(16)) & mask]
        ^ tables[3, (crc >> np.uint64(24)) & mask]
    )


@njit
def _lanes(at: Any, lane: Any, state: Any) -> Any:
    """Three lanes side by side: their states."""
    one, two = np.uint64(0), np.uint64(0)
    for i in range(0, np.int64(lane), 8):
        here = at + np.uint64(i)
        state = _crc_word(state, load_u64(here))
        one = _crc_word(one, load_u64(here + lane))
        two = _crc_word(two, load_u64(here + lane + lane))
    return state, one, two


@njit
def _by_instruction(at: Any, nbytes: Any, state: Any) -> Any:
    end = at + nbytes
    long, short, word = np.uint64(_LONG), np.uint64(_SHORT), np.uint64(8)
    while end - at >= np.uint64(3 * _LONG):
        state, one, two = _lanes(at, long, state)
        state = _shifted(_AFTER_LONG, _shifted(_AFTER_LONG, state) ^ one) ^ two
        at += np.uint64(3 * _LONG)
    while end - at >= np.uint64(3 * _SHORT):
        state, one, two = _lanes(at, short, state)
        state = _shifted(_AFTER_SHORT, _shifted(_AFTER_SHORT, state) ^ one) ^ two
        at += np.uint64(3 * _SHORT)
    while end - at >= word:
        state = _crc_word(state, load_u64(at))
        at += word
    return _bytewise(at, end - at, state)


@njit
def _bytewise(at: Any, nbytes: Any, state: Any) -> Any:
    for i in range(np.int64(nbytes)):
        byte = load_u8(at + np.uint64(i))
        state = np.uint64(_BYTES[0, (state ^ byte) & np.uint64(255)]) ^ (state >> np.uint64(8))
    return state


@njit
def _by_tables(at: Any, nbytes: Any, state: Any) -> Any:
    end = at + nbytes
    mask = np.uint64(255)
    while end - at >= np.uint64(8):
        low = load_u32(at) ^ state
        high = load_u32(at + np.uint64(4))
        state = np.uint64(
            _BYTES[7, low & mask] ^ _BYTES[6, (low >> np.uint64(8)) & mask]
            ^ _BYTES[5, (low >> np.uint64(16)) & mask] ^ _BYTES[4, low >> np.uint64(24)]
            ^ _BYTES[3, high & mask] ^ _BYTES[2, (high >> np.uint64(8)) & mask]
            ^ _BYTES[1, (high >> np.uint64(16)) & mask] ^ _BYTES[0, high >> np.uint64(24)]
        )  # fmt: skip
        at += np.uint64(8)
    return _bytewise(at, end - at, state)


_state_after: Any = _by_instruction if has_instruction() else _by_tables


@njit
def crc32c_at(at: Any, nbytes: Any, seed: Any) -> Any:
    """CRC-32C of so many bytes at an address (u64 each), continuing from `seed` (0 to begin): u64."""
    ones = np.uint64(0xFFFFFFFF)
    return _state_after(at, nbytes, seed ^ ones) ^ ones
