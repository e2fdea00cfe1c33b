"""Writes the package of a new plugin: complete, installable, and right from its first test run."""

from __future__ import annotations

import keyword
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final

from trident_core.cli.names import COMMANDS
from trident_core.contracts import Kind
from trident_core.engines import UNFILLED
from trident_core.errors import UsageError
from trident_core.plugins import NAME, NAMES_ARE, registry

#: How the engine is used, by kind; of the others, by the command that takes them.
_USES: Final[Mapping[Kind, str]] = {
    Kind.FEED: "`trident info FILE` recognises its files by their bytes; `--feed @NAME@` forces it.",
    Kind.COMMAND: "`trident @NAME@ --help`.",
}
_SELECTS: Final[Mapping[Kind, str]] = {
    Kind.PARSER: "replay FILE",
    Kind.BOOK: "replay FILE",
    Kind.STORE: "run FILE STORE",
    Kind.QUERY: "query STORE",
    Kind.SEQUENCE: "query STORE --match PATTERN",
}
_SHOWS: Final = (
    "`trident @COMMAND@ --@KIND@ @NAME@` uses it.\n"
    "What it gets wrong, `trident conform --@KIND@ @NAME@` shows."
)
#: Kinds whose template has a test of its own; the others are given to the conformance suite.
_OWN_TESTS: Final = (Kind.FEED, Kind.COMMAND)
#: What the suite of a kind needs besides, as extras of trident-core.
_EXTRAS: Final = {Kind.SEQUENCE: ("sql",)}
_PLURALS: Final = {Kind.QUERY: "queries"}
_PROTOCOLS: Final = {Kind.FEED: ("itch50",), Kind.PARSER: ("itch50",)}


@dataclass(frozen=True)
class Plan:
    """What will be written. `files`: path in the folder -> text."""

    folder: Path
    files: Mapping[str, str]


def plan(kind: Kind, name: str, folder: Path | None = None) -> Plan:
    """The package of a plugin of `kind` called `name`. Raises UsageError for a name that cannot be one, or
    that the project's own engine or command has."""
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be the name of a plugin", hint=NAMES_ARE)
    if kind is Kind.COMMAND and name in COMMANDS:
        raise UsageError(f"trident has a command {name!r} already", hint="choose another name")
    if registry().is_own(kind, name):
        raise UsageError(
            f"Trident's own {kind} engine is called {name!r}, and stays the one of that name",
            hint="choose another name",
        )
    words = [word for word in re.split(r"[-_.]", name) if word]
    distribution = "-".join(["trident", str(kind), *words])
    values = {
        "NAME": name,
        "KIND": str(kind),
        "DISTRIBUTION": distribution,
        "PACKAGE": distribution.replace("-", "_"),
        "CLASS": _identifier("".join(word.capitalize() for word in words), "N")
        + ("" if kind is Kind.COMMAND else kind.capitalize()),
        "FUNCTION": _identifier("_".join(words), "do_"),
        "SPEC": "CommandSpec" if kind is Kind.COMMAND else "EngineSpec",
        "IMPORTS": "CommandSpec" if kind is Kind.COMMAND else "EngineSpec, Kind",
        "HOOK": f"trident_register_{_PLURALS.get(kind, kind + 's')}",
        "EXTRAS": ",".join(["conformance", *_EXTRAS.get(kind, ())]),
        "SUMMARY": f"A {kind} for Trident called {name}.",
    }
    values["COMMAND"] = _SELECTS.get(kind, "")
    values["USE"] = _filled(_USES.get(kind, _SHOWS), values)
    values["FIELDS"] = _fields(kind, values)
    package = f"src/{values['PACKAGE']}"
    paths = {
        "pyproject.toml": "common/pyproject.toml",
        "README.md": "common/README.md",
        ".gitignore": "common/gitignore",
        ".github/workflows/test.yml": "common/ci.yml",
        f"{package}/plugin.py": "common/plugin.py",
        f"{package}/engine.py": f"{kind}/engine.py",
        "tests/test_engine.py": f"{kind}/test_engine.py" if kind in _OWN_TESTS else "common/test_contract.py",
    }
    made = {path: _filled(_template(template), values) for path, template in paths.items()}
    made[f"{package}/__init__.py"] = f'"""{values["SUMMARY"]}"""\n'
    return Plan(folder or Path(distribution), made)


def _identifier(text: str, before: str) -> str:
    """`text` as a name in Python: what begins with a digit or is a keyword gets something put before it."""
    return before + text if text[0].isdigit() or keyword.iskeyword(text) else text


def write(made: Plan) -> None:
    """Write the package, whole or not at all. Raises UsageError when the folder is there already."""
    if made.folder.exists():
        raise UsageError(f"{made.folder} exists already", hint="name another folder with --into")
    part = made.folder.with_name(made.folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    for path, text in made.files.items():
        target = part / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    part.rename(made.folder)


def _template(name: str) -> str:
    return (files("trident_core") / "templates" / f"{name}.tmpl").read_text(encoding="utf-8")


def _filled(text: str, values: Mapping[str, str]) -> str:
    return re.sub(r"@([A-Z]+)@", lambda match: values[match[1]], text)


def _fields(kind: Kind, values: Mapping[str, str]) -> str:
    """The arguments of the spec, one a line."""
    what = "target" if kind is Kind.COMMAND else "factory"
    attribute = values["FUNCTION"] if kind is Kind.COMMAND else values["CLASS"]
    fields = {
        "name": repr(values["NAME"]),
        what: repr(f"{values['PACKAGE']}.engine:{attribute}"),
        "summary": repr(f"a {kind} {UNFILLED}"),
    }
    if kind is not Kind.COMMAND:
        fields = {"kind": f"Kind.{kind.name}", **fields}
    if kind in _PROTOCOLS:
        fields["protocols"] = repr(_PROTOCOLS[kind])
    return "\n".join(
        f"            {name}={value.replace(chr(39), chr(34))}," for name, value in fields.items()
    )
