"""A simulated day for the demo and the benchmarks, by whichever plugin provides `trident simulate`."""

from __future__ import annotations

import contextlib
import importlib
import io
from pathlib import Path
from typing import Any

from trident_core.errors import PluginError
from trident_core.plugins import registry


def simulate_day(path: Path, *, messages: int, symbols: int, seed: int = 1, **options: Any) -> None:
    """Write a day to `path`, with the command's progress but without its summary. `options`: others of it.

    Raises PluginError when no plugin has the command, UsageError for sizes that it refuses.
    """
    spec = next((spec for spec in registry().commands() if spec.name == "simulate"), None)
    if spec is None:
        raise PluginError("no plugin provides `trident simulate`", hint="reinstall trident-core")
    module, _, attribute = spec.target.partition(":")
    simulate = getattr(importlib.import_module(module), attribute)
    with contextlib.redirect_stdout(io.StringIO()):
        simulate(path, messages=messages, symbols=symbols, seed=seed, **options)
