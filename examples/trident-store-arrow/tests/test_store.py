"""The contract's own suite, and what is this store's own: others read its files."""

import subprocess
import sys

import numpy as np
import pyarrow.dataset as ds

from trident_core.dtypes import EVENT
from trident_core.session import Session
from trident_store_arrow.store import ArrowStore


def test_the_contract():
    command = [sys.executable, "-m", "trident_core.cli", "conform", "--store", "arrow", "--quick"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_anyone_reads_the_files(tmp_path):
    events = np.zeros(1_000, EVENT)
    events["seq"], events["price"] = np.arange(1, 1_001), np.arange(1_000)
    with ArrowStore(tmp_path / "s", "create", Session()) as store:
        store.append(events[:400])
        store.sync()
        store.append(events[400:])
    table = ds.dataset(sorted(map(str, (tmp_path / "s").glob("*.arrow"))), format="arrow").to_table()
    assert table["seq"].to_pylist() == list(range(1, 1_001))
    assert table["price"].to_pylist() == list(range(1_000))
