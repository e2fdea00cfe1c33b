"""`python -m trident_conformance [pytest arguments…]`: the suites, as `trident conform` runs them.

`bitrot`: what stores say of damaged files; `crash`, `kill`, `power`: what is left of them after power cuts in
a model, kills, and failures of real disks. `regex`: query engines against other engines' cases.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Final

try:
    import pytest  # noqa: F401
except ModuleNotFoundError:  # the suite's own tools are an extra
    sys.exit("error: pytest is missing\nhint: pip install 'trident-core[conformance]'")

#: First argument -> the module whose `main(arguments)` it stands for.
LABORATORIES: Final = {
    "bitrot": "trident_conformance.bitrot",
    "crash": "trident_conformance.crash.command",
    "kill": "trident_conformance.crash.kill",
    "power": "trident_conformance.crash.power",
    "regex": "trident_conformance.regex",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the first argument names, else the suites. Returns an exit status, 0: all is well."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    module = LABORATORIES.get(given[0]) if given else None
    if module:
        return int(importlib.import_module(module).main(given[1:]))
    from trident_conformance.command import run

    return run(given)


if __name__ == "__main__":
    sys.exit(main())
