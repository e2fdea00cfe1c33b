"""The compile cache: a hit when nothing changed, afresh when a helper or a constant changed elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from trident_core.jit import source_hash

KERNEL = """
from kernels_of_a_test.helper import helped
from trident_core.jit import njit

@njit
def kernel(x):
    return helped(x)
"""
HELPER = """
from kernels_of_a_test.constant import NUMBER
from trident_core.jit import njit_inlined

@njit_inlined
def helped(x):
    return x + NUMBER
"""
RUN = "from kernels_of_a_test.kernel import kernel; print(kernel(1), sum(kernel.stats.cache_hits.values()))"


def run(folder: Path) -> str:
    env = os.environ | {"PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run([sys.executable, "-c", RUN], env=env, capture_output=True, text=True, timeout=120)
    return done.stdout.strip() or done.stderr


def test_a_constant_in_another_file_is_part_of_the_key(tmp_path: Path) -> None:
    package = tmp_path / "kernels_of_a_test"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "kernel.py").write_text(KERNEL)
    (package / "helper.py").write_text(HELPER)
    (package / "constant.py").write_text("NUMBER = 1\n")
    assert run(tmp_path) == "2 0"
    assert run(tmp_path) == "2 1"
    (package / "constant.py").write_text("NUMBER = 2\n")
    assert run(tmp_path) == "3 0"


def test_packages_have_keys_of_their_own_and_know_what_they_import() -> None:
    keys = {name: source_hash(name) for name in ("trident_core", "trident_parser", "trident_sim")}
    assert len(set(keys.values())) == 3
    assert source_hash("trident_sim") == keys["trident_sim"]
    assert len(source_hash("no_such_package_at_all")) == 16
