"""The page docs/contracts/signatures.md: every hook, and every member of every Protocol, from the code.

`python -m trident_conformance.signatures DOCS [--check]`.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from trident_core import contracts, hookspecs
from trident_core.contracts import CONTRACT_VERSIONS
from trident_core.engines import members

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


def protocols() -> list[type]:
    """The Protocols of the contracts, in the order of the module."""
    found = vars(contracts).values()
    return [one for one in found if isinstance(one, type) and getattr(one, "_is_protocol", False)
            and one.__module__ == contracts.__name__]  # fmt: skip


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
    return str(text).replace("'", "").replace("|", "\\|")


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
