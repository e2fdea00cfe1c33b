"""The page docs/contracts/signatures.md: every hook, and every member of every Protocol, from the code.

`python -m trident_conformance.signatures DOCS [--check]`.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from trident_core import contracts, dtypes, errors, hookspecs, orders
from trident_core.contracts import CONTRACT_VERSIONS
from trident_core.engines import members
from trident_core.session import Directory, Instrument, Session
from trident_core.stats import Anomalies

PAGE: Final = "signatures.md"
_HEAD: Final = """# Hooks and signatures

Made by `python -m trident_conformance.signatures docs` from the code of `trident_core.hookspecs` and
`trident_core.contracts`; a test keeps it true. What each must do is on the page of its kind.
"""


def page() -> str:
    """The text of the page."""
    versions = ", ".join(f"{kind} {major}.{minor}" for kind, (major, minor) in CONTRACT_VERSIONS.items())
    lines = [_HEAD, f"Versions today: {versions}.", "", "## Hooks", "", "| hook | adds |", "|---|---|"]
    for name, hook in vars(hookspecs).items():
        if name.startswith("trident_register_"):
            lines.append(f"| `{name}{_signature(hook)}` | {_first_line(hook)} |")
    lines += [
        "",
        "## Records",
        "",
        "Arrays of `trident_core.dtypes` and `trident_core.orders`, little-endian; the numbers are bits.",
        "",
    ]
    lines += ["| record | bytes | columns |", "|---|---|---|"]
    for name, dtype in records():
        lines.append(f"| `{name}` | {dtype.itemsize} | {_columns(dtype)} |")
    lines += [
        "",
        "## Constants and plain classes",
        "",
        "| name | import from | what it has |",
        "|---|---|---|",
    ]
    lines += [f"| `{one.__name__}` | `{_home(one)}` | {_has(one)} |" for one in plain()]
    lines += ["", "## Errors", "", "In `trident_core.errors`.", "", "| error | what |", "|---|---|"]
    lines += [f"| `{one.__name__}{_signature(one)}` | {_first_line(one)} |" for one in raised()]
    for protocol in protocols():
        lines += [
            "",
            f"## {protocol.__name__}",
            "",
            _first_line(protocol),
            "",
            "| member | what |",
            "|---|---|",
        ]
        lines += [f"| `{shown}` | {what} |" for shown, what in _members(protocol)]
    return "\n".join(lines) + "\n"


def records() -> list[tuple[str, np.dtype[Any]]]:
    """The records, by name."""
    found = [*vars(dtypes).items(), *vars(orders).items()]
    return [(name, value) for name, value in found if isinstance(value, np.dtype) and value.names]


def plain() -> list[type]:
    """Enumerations and plain classes that engines are given or give."""
    classes = [one for module in (dtypes, contracts) for one in _defined_in(module)]
    enums = [one for one in classes if issubclass(one, Enum)]
    return [
        *enums, contracts.Chunk, contracts.FeedOptions, contracts.ParseResult, contracts.Recovery,
        contracts.Finding, contracts.Verification, contracts.EngineSpec, contracts.CommandSpec,
        contracts.MarketRules, contracts.Submitted,
        Session, Directory, Instrument, Anomalies,
    ]  # fmt: skip


def raised() -> list[type]:
    """The errors that engines may raise."""
    return [one for one in _defined_in(errors) if issubclass(one, errors.TridentError)]


def _home(one: type) -> str:
    """Where to import it from: the package of the contracts, not its modules."""
    package = contracts.__name__
    return package if one.__module__.startswith(package) else one.__module__


def _columns(dtype: np.dtype[Any]) -> str:
    fields: Any = dtype.fields
    return ", ".join(f"`{name} {_format(fields[name][0])}`" for name in dtype.names or ())


def _format(dtype: np.dtype[Any]) -> str:
    base, shape = dtype.subdtype or (dtype, ())
    text = f"{base.kind}{8 * base.itemsize}"
    return f"{text}[{shape[0]}]" if shape else text


def _has(one: type) -> str:
    if issubclass(one, Enum):
        return ", ".join(f"`{member.name}` {member.value!r}" for member in one)
    if issubclass(one, tuple):
        return ", ".join(f"`{name}`" for name in one._fields)  # type: ignore[attr-defined]
    if is_dataclass(one):
        columns = [f"`{field.name}: {_type(field.type)}`" for field in fields_of(one)]
        return ", ".join(columns + _methods(one))
    return ", ".join(_methods(one))


def _methods(one: type) -> list[str]:
    """Public methods and properties of a class."""
    found = []
    for name, member in vars(one).items():
        if isinstance(member, property):
            getter: Any = member.fget
            found.append(f"`{name}: {_type(inspect.signature(getter).return_annotation)}`")
        elif not name.startswith("_") and callable(getattr(one, name)) and not isinstance(member, type):
            found.append(f"`{name}{_signature(getattr(one, name))}`")
    return found


def protocols() -> list[type]:
    """The Protocols of the contracts, in the order of the module."""
    return [one for one in _defined_in(contracts) if getattr(one, "_is_protocol", False)]


def _defined_in(module: ModuleType) -> list[type]:
    """The classes of a module, or of a package that gathers them from its modules."""
    found = vars(module).values()
    return [
        one
        for one in found
        if isinstance(one, type) and f"{one.__module__}.".startswith(f"{module.__name__}.")
    ]


def _members(protocol: type) -> Iterator[tuple[str, str]]:
    for name in members(protocol):
        member = inspect.getattr_static(protocol, name, None)
        if isinstance(member, property):
            getter: Any = member.fget
            yield f"{name}: {_type(inspect.signature(getter).return_annotation)}", _first_line(getter)
        elif member is None or not callable(getattr(protocol, name, None)):
            yield f"{name}: {_type(protocol.__annotations__.get(name, ''))}", ""
        else:
            function = getattr(protocol, name)
            yield f"{name}{_signature(function)}", _first_line(function)


def _signature(function: Any) -> str:
    return _type(str(inspect.signature(function))).replace("(self, ", "(").replace("(self)", "()")


def _type(text: Any) -> str:
    return str(text).replace("''", '""').replace("'", "").replace("|", "\\|")


def _first_line(thing: Any) -> str:
    """The first paragraph of its docstring."""
    return " ".join((inspect.getdoc(thing) or "").partition("\n\n")[0].split()).replace("|", "\\|")


def main(arguments: Sequence[str] | None = None) -> int:
    """0: written, or true; 1: with --check, when it is old."""
    parser = argparse.ArgumentParser(prog="python -m trident_conformance.signatures")
    parser.add_argument("docs", type=Path)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit with 1 when the page is old"
    )
    options = parser.parse_args(arguments)
    target = options.docs / "contracts" / PAGE
    stale = not target.exists() or target.read_text(encoding="utf-8") != page()
    if not options.check:
        target.write_text(page(), encoding="utf-8")
    elif stale:
        print(f"{target.name} is old: make it again", file=sys.stderr)
    return int(options.check and stale)


if __name__ == "__main__":
    sys.exit(main())
