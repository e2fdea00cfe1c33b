"""Kernels that only kernels call have no machine code of their own; what they do is the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from trident_core.jit import how_to_compile

KERNELS = """
from trident_core.jit import njit, njit_inlined, njit_kernel

@njit_inlined
def twice(x):
    return 2 * x

@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)
def checked(x):
    if x < 0:
        raise ValueError("negative", x)
    return twice(x)

@njit_kernel
def factorial(n):
    if n < 2:
        return 1
    return n * factorial(n - 1)

@njit
def one(x):
    return checked(x) + factorial(x)

@njit
def other(x):
    return checked(x) + twice(x) + one(x)
"""
RUN = """
from kernels_called import kernels as k
answers = [k.one(5), k.other(5)]
try:
    k.one(-3)
except ValueError as error:
    answers += error.args
hits = [sum(kernel.stats.cache_hits.values()) for kernel in (k.one, k.other)]
codegen = [
    name for name in ("twice", "checked", "factorial", "one")
    for cres in getattr(k, name).overloads.values()
    if cres.library.codegen._engine.is_symbol_defined(cres.fndesc.llvm_func_name)
]
print(*answers, hits, codegen)
"""


def run(folder: Path, code: str = RUN) -> str:
    env = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    if "PYTHONPATH" in os.environ:
        env["PYTHONPATH"] += os.pathsep + os.environ["PYTHONPATH"]
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    return done.stdout.strip() or done.stderr


def test_answers_errors_and_recursion_compiled_and_loaded(tmp_path: Path) -> None:
    package = tmp_path / "kernels_called"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "kernels.py").write_text(KERNELS)
    answers = "130 150 negative -3"
    assert run(tmp_path) == f"{answers} [0, 0] ['factorial', 'one']"
    assert run(tmp_path) == f"{answers} [1, 1] ['one']"
    # A kernel that the cache lost is compiled with the callees that it kept.
    for index in (tmp_path / "cache").rglob("*other*.nbi"):
        index.unlink()
    assert run(tmp_path).startswith(f"{answers} [1, 0]")


def test_another_numba_builds_kernels_as_it_always_does() -> None:
    assert how_to_compile("0.61.2") == how_to_compile("0.680.0") == {}
    assert how_to_compile("0.68.1")["pipeline_class"].__name__ == "KernelCompiler"
