"""Random integers that never change: splitmix64 (Steele, Lea, Flood 2014), without floats or numpy's
generators.

The same stream in two forms: one number at a time inside the kernel, and whole arrays for what is prepared.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.jit import njit

#: How the simulator's kernel is compiled. Its functions allocate nothing, so they need no reference counts,
#: are called from each other only, so they need no wrappers, and divide by numbers that are never 0. All this
#: is time to compile; so are integers of many sizes, each of which is one more variant: everything passed
#: between them is an i64.
ENTRY: Final[dict[str, Any]] = {"_nrt": False, "error_model": "numpy"}
KERNEL: Final = {**ENTRY, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
INLINED: Final = {**ENTRY, "inline": "always"}

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_S27: Final = np.uint64(27)
_S30: Final = np.uint64(30)
_S31: Final = np.uint64(31)
_S33: Final = np.uint64(33)


@njit(**KERNEL)
def bits31(rng: Any) -> Any:
    """The next 31 random bits as an i64. `rng` is u64[1], the state."""
    state = rng[0] + _GOLDEN
    rng[0] = state
    z = (state ^ (state >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return np.int64((z ^ (z >> _S31)) >> _S33)


@njit(**INLINED)
def below(rng: Any, n: int) -> Any:
    """Uniform in [0, n), n at most 2**31."""
    return (bits31(rng) * n) >> 31


@njit(**INLINED)
def log_uniform(rng: Any, bits: int) -> Any:
    """From 1 to 2**bits - 1 with density about 1/x: every octave is equally likely. bits at most 31."""
    octave = below(rng, bits)
    return (1 << octave) + (bits31(rng) & ((1 << octave) - 1))


class Stream:
    """Arrays of random integers for the prepared parts; one salt for each purpose keeps them independent."""

    def __init__(self, seed: int, salt: int) -> None:
        mixed = (seed * 0xD1342543DE82EF95 + salt * 0xAF251AF3B0F025B5 + 1) & ((1 << 64) - 1)
        self._state = np.array([mixed], np.uint64)

    def bits31(self, n: int) -> NDArray[np.int64]:
        states = self._state + _GOLDEN * np.arange(1, n + 1, dtype=np.uint64)
        if n:
            self._state = states[-1:]
        z = (states ^ (states >> _S30)) * _MIX_1
        z = (z ^ (z >> _S27)) * _MIX_2
        return ((z ^ (z >> _S31)) >> _S33).astype(np.int64)

    def below(self, n: int, limit: int) -> NDArray[np.int64]:
        """i64[n], uniform in [0, limit)."""
        return (self.bits31(n) * limit) >> 31

    def between(self, n: int, low: int, high: int) -> NDArray[np.int64]:
        """i64[n], uniform in [low, high)."""
        return low + self.below(n, high - low)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """A random order of 0 … n-1."""
        return np.argsort(self.bits31(n), kind="stable").astype(np.int64)

    def seed(self) -> int:
        """A 62-bit seed for another generator."""
        high, low = self.bits31(2)
        return int(high) << 31 | int(low)
