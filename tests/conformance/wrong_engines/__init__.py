"""Engines that are wrong in one way each, and one right engine of each kind as the control.

`test_rejected.py` gives them to the suite by factory and wants every wrong one rejected for its own fault.
Those that break a store's protocol of writing are in `trident_conformance.crash.mutants`.
"""

from wrong_engines.books import *  # noqa: F403
from wrong_engines.feeds import *  # noqa: F403
from wrong_engines.markets import *  # noqa: F403
from wrong_engines.parsers import *  # noqa: F403
from wrong_engines.queries import *  # noqa: F403
from wrong_engines.sequences import *  # noqa: F403
from wrong_engines.stores import *  # noqa: F403
