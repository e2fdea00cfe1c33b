"""Random integers that never change: splitmix64 (Steele, Lea, Flood 2014), without floats or numpy's
generators.

The same stream in two forms: one number at a time inside the kernel, and whole arrays for what is prepared.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from trident_core.jit import I64, njit, njit_kernel

#: Place of the generator's state in the simulator's array of numbers, `State.g`.
RNG: Final = 0

_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)
_S27: Final = np.uint64(27)
_S30: Final = np.uint64(30)
_S31: Final = np.uint64(31)
_S33: Final = np.uint64(33)


@njit_kernel
def bits31(g: Any) -> Any:
    """The next 31 random bits as an i64. The generator's state is `g[RNG]`."""
    state = np.uint64(g[RNG]) + _GOLDEN
    g[RNG] = np.int64(state)
    z = (state ^ (state >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return np.int64((z ^ (z >> _S31)) >> _S33)


@njit(inline="always")
def below(g: Any, n: I64) -> Any:
    """Uniform in [0, n), n at most 2**31."""
    return (bits31(g) * n) >> 31


@njit(inline="always")
def log_uniform(g: Any, bits: I64) -> Any:
    """From 1 to 2**bits - 1 with density about 1/x: every octave is equally likely. bits at most 31."""
    octave = below(g, bits)
    return (1 << octave) + (bits31(g) & ((1 << octave) - 1))


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
        drawn: NDArray[np.int64] = ((z ^ (z >> _S31)) >> _S33).astype(np.int64)
        return drawn

    def below(self, n: int, limit: int) -> NDArray[np.int64]:
        """i64[n], uniform in [0, limit)."""
        drawn: NDArray[np.int64] = (self.bits31(n) * limit) >> 31
        return drawn

    def between(self, n: int, low: int, high: int) -> NDArray[np.int64]:
        """i64[n], uniform in [low, high)."""
        return self.below(n, high - low) + low

    def permutation(self, n: int) -> NDArray[np.int64]:
        """A random order of 0 … n-1."""
        return np.argsort(self.bits31(n), kind="stable").astype(np.int64)

    def seed(self) -> int:
        """A 62-bit seed for another generator."""
        high, low = self.bits31(2)
        return int(high) << 31 | int(low)
