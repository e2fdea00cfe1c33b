"""The built-in commands of `trident`, as names: light, so that discovery can hold plugins against it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Built-in commands: name -> (module:function, summary), in the order of --help.
COMMANDS: Final[Mapping[str, tuple[str, str]]] = {
    "demo": ("trident_core.cli.demo:demo", "The whole line on a simulated day or on FILE, with answers."),
    "info": ("trident_core.cli.info:info", "What is in FILE: types, symbols, time range, anomalies."),
    "replay": ("trident_core.cli.replay:replay", "Rebuild the books of FILE; show the touch and the depth."),
    "run": ("trident_core.cli.run:run", "FILE through parser and book into a durable STORE."),
    "convert": ("trident_core.cli.convert:convert", "FILE into tables: Parquet, Arrow or CSV in OUT."),
    "query": ("trident_core.cli.query:query", "Events of STORE by patterns on symbol, MPID and type."),
    "verify": ("trident_core.cli.verify:verify", "Read every byte of STORE and check it, and its indexes."),
    "export": ("trident_core.cli.export:export", "Events of STORE into OUT: Parquet, Arrow, CSV, ITCH."),
    "plugins": ("trident_core.cli.plugins:plugins", "Engines installed, their state and which are selected."),
    "conform": ("trident_core.cli.conform:conform", "Engines against the contract: the conformance suite."),
    "new-plugin": (
        "trident_core.cli.new_plugin:new_plugin",
        "Write a plugin's package, ready to be filled in.",
    ),
    "bench": ("trident_core.cli.bench:bench", "The project's benchmarks, on this machine."),
    "warm": ("trident_core.cli.warm:warm", "Compile all kernels now; else the first runs do."),
    "doctor": (
        "trident_core.cli.doctor:doctor",
        "Versions, CPU features, caches and limits that matter here.",
    ),
}
