"""The `trident` script: what must hold before anything heavy is imported, and until the process ends.

- Descriptors 0 to 2 are open, so that no store's file can take the place of a closed one and have another
  library's messages written into it.
- Outside a command's own work, while imports take their time or at the end, Ctrl-C ends the process at once:
  there is nothing to clean up, and nothing to say.
- Inside it, Ctrl-C and SIGTERM raise KeyboardInterrupt, so that a run stops early and in order.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType


def main() -> None:
    """Entry point of the `trident` script."""
    open_streams()
    interrupts_end_the_process()
    from trident_core.cli.main import main as run

    run()


def open_streams() -> None:
    """Open what the parent closed of standard input, output and error, on /dev/null."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115  until the process ends
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115


def interrupts_end_the_process() -> None:
    """Ctrl-C and SIGTERM have the system's default action, unless the parent had them ignored."""
    for number, ours in _OURS.items():
        if signal.getsignal(number) is ours:
            signal.signal(number, signal.SIG_DFL)


def interrupts_raise() -> None:
    """Ctrl-C and SIGTERM raise KeyboardInterrupt, if `interrupts_end_the_process` was called before."""
    for number, ours in _OURS.items():
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, ours)


def _raise(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


#: What raises KeyboardInterrupt, by signal; each is left alone where the parent had it ignored (nohup, &).
_OURS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: _raise}
