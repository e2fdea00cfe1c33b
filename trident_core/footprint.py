"""The memory of a job, honestly: run once in a fresh process that does nothing else.

`peak_mb` is VmHWM of that process, kept by the system: everything resident, with the interpreter, the
libraries the job loads and the pages of files it maps. `anonymous_mb` is the part that is no file's, looked
at every few milliseconds from outside, so a short peak may be missed.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

_POLL_S: Final = 0.004


class Footprint(NamedTuple):
    """In MB of 10^6 bytes."""

    peak_mb: float
    anonymous_mb: float


def footprint(job: Callable[[], object]) -> Footprint:
    """Run `job`, which must be picklable (a function of a module, or a `partial` of one), on its own.

    Raises RuntimeError, with the end of its error output, if it fails there.
    """
    command = [sys.executable, "-m", "trident_core.footprint"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        assert process.stdin is not None
        process.stdin.write(pickle.dumps(job))
        process.stdin.close()
        process.stdin = None
        own = 0
        while process.poll() is None:
            status = _status(process.pid)
            own = max(own, status.get("RssAnon", 0) + status.get("RssShmem", 0))
            time.sleep(_POLL_S)
        out, err = process.communicate()
    if process.returncode:
        raise RuntimeError(err.decode(errors="replace").strip().rpartition("\n")[2])
    peak = int(out.split()[-1])
    return Footprint(round(peak / 1e6, 1), round(own / 1e6, 1))


def _status(pid: int | str) -> dict[str, int]:
    """The bytes that /proc says of a process; nothing of one that has gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return {}
    rows = (line.split() for line in lines if line.endswith(" kB"))
    return {row[0].rstrip(":"): int(row[1]) * 1024 for row in rows}


if __name__ == "__main__":
    pickle.load(sys.stdin.buffer)()
    print(_status("self")["VmHWM"])
