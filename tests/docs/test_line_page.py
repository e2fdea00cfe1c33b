"""docs/line.md: its example runs, its tables are the code's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from trident_core.line import drain, spill_format
from trident_core.line.faults import KINDS, parse_fault
from trident_core.line.ladder import NAMES, Thresholds
from trident_core.pipeline import LIVE_RING_CAPACITY, RING_CAPACITY

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "line.md").read_text()


def test_the_example_runs(tmp_path: Path) -> None:
    [code] = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr


def test_the_ladder_on_the_page_is_the_codes() -> None:
    thresholds = Thresholds()
    for name, up, down in zip(NAMES[1:], thresholds.up, thresholds.down, strict=True):
        assert f"| {name} | {up:.0%} full | below {down:.0%}".replace("%", " %") in PAGE
    assert f"for {thresholds.calm_s * 1e3:.0f} ms" in PAGE
    assert f"after {drain.SHED_SYNC_MAX_S:.0f} s all the same" in PAGE
    assert f"{RING_CAPACITY:,} events" in PAGE
    assert f"{LIVE_RING_CAPACITY:,} events" in PAGE


def test_every_fault_is_on_the_page_with_its_default_and_all_are_understood() -> None:
    for kind, (_, default, _, _) in KINDS.items():
        assert f"| `{kind}{'=' if default else ''}{default}` | {default}" in PAGE, kind
    for text in re.findall(r"--inject ([a-z][^ \n`]+@\S+)", PAGE):
        parse_fault(text)


def test_a_frames_header_is_as_the_page_says() -> None:
    frame = spill_format.Frame(1, 2, 128, 4, 5, 6, 7, 8, 9, 10)
    data = spill_format.encode_header(frame)
    rows = re.findall(r"^\| (\d+) \| (u16|u32|u64|4 bytes) \| ([a-z ]+) \|", PAGE, re.MULTILINE)
    found = {
        name: int.from_bytes(data[int(at) : int(at) + int(kind.strip("u")) // 8], "little")
        for at, kind, name in rows
        if kind != "4 bytes"
    }
    found.pop("crc")
    assert found == {
        "kind": 1, "version": 1, "count": 2, "payload bytes": 128, "number": 4, "before seq": 5,
        "first seq": 6, "last seq": 7, "before crc": 8, "payload crc": 9, "file": 10,
    }  # fmt: skip
    assert data[:4] == b"TSPL"
