"""docs/python.md: its examples run, one after the other, and its limits are the code's."""

from __future__ import annotations

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trident_core.cli.simulated import simulate_day
from trident_core.day import event_file, index, lookup, plots
from trident_core.dtypes import EVENT

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "python.md").read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("user")
    simulate_day(made / "day", messages=8_000, symbols=10)
    with gzip.open(made / "12302019.NASDAQ_ITCH50.gz", "wb") as file:
        file.write((made / "day").read_bytes())
    return made


def test_the_examples_run_in_order(folder: Path) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert len(examples) == 9
    code = "\n".join(examples).replace('"AAPL"', "FIRST").replace('"MSFT"', "SECOND")
    opened = 'day = trident.open("12302019.NASDAQ_ITCH50.gz")\n'
    assert opened in code
    code = code.replace(opened, opened + "FIRST, SECOND = 'ZXZZT', day.symbols[0]\n", 1)
    code += "\nassert len(trades) > 0 and len(book.orders) > 0 and len(quotes) > 0\n"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=folder, capture_output=True, text=True, timeout=300,
        env={"MPLBACKEND": "Agg", "MPLCONFIGDIR": str(folder), "PATH": "", "HOME": str(Path.home())},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "<book of ZXZZT at 10:31:07.500000000" in done.stdout
    assert (folder / "book.png").stat().st_size > 10_000
    assert (folder / "spread.png").stat().st_size > 10_000


def test_the_limits_are_those_of_the_code() -> None:
    assert EVENT.itemsize + 4 == 68
    assert "68 bytes a message" in PAGE
    assert index.SPAN == 1 << 20
    assert event_file.RESERVE_BYTES == 1 << 30
    assert "1 GiB of the disk" in PAGE
    assert f"{lookup.INTERVAL:,} of its events" in PAGE
    assert f"at most {lookup.MEMORY_MAX >> 20} MiB" in PAGE
    assert f"more than {plots.CHANGES_MAX:,}\nchanges" in PAGE
    assert f"in {plots.PIECES} pieces" in PAGE
