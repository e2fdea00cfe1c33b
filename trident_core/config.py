"""Which engine is used: flag > environment > trident.toml > default."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from trident_core.contracts import Kind
from trident_core.errors import UsageError

#: Preferred engines by kind; the first one installed is the default. Names only: nothing is imported here.
DEFAULTS: Final[Mapping[Kind, tuple[str, ...]]] = {
    Kind.PARSER: ("numba", "reference"),
    Kind.BOOK: ("numba", "reference"),
    Kind.STORE: ("lsm", "reference"),
    Kind.SEQUENCE: ("numba", "reference"),
    Kind.QUERY: ("auto", "llvm", "dfa", "reference"),
}

CONFIG_FILE: Final = "trident.toml"
_EXAMPLE: Final = 'it may hold one table: [engines] with lines such as book = "reference"'


@dataclass(frozen=True, slots=True)
class Choice:
    """The wanted engine name and where the wish comes from; name None means the default."""

    name: str | None
    origin: str


def configured(kind: Kind, flag: str | None = None, *, folder: Path | None = None) -> Choice:
    """What the user wants for `kind`. Raises UsageError for a broken trident.toml."""
    if flag:
        return Choice(flag, f"--{kind}")
    variable = f"TRIDENT_{kind.upper()}"
    if os.environ.get(variable):
        return Choice(os.environ[variable], variable)
    engines = _read_engines((folder or Path.cwd()) / CONFIG_FILE)
    if kind.value in engines:
        return Choice(engines[kind.value], CONFIG_FILE)
    return Choice(None, "default")


def _read_engines(path: Path) -> dict[str, str]:
    """The [engines] table of trident.toml: kind -> name."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path.name}: {error}", hint="it is a text file in UTF-8") from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path.name} is not TOML: {error}", hint=_EXAMPLE) from None
    selectable = [kind.value for kind in Kind if kind is not Kind.COMMAND]
    unknown = [key for key in data if key != "engines"]
    engines = data.get("engines", {})
    if unknown or not isinstance(engines, dict):
        raise UsageError(
            f"{path.name} has an unknown entry {unknown[0] if unknown else 'engines'!r}",
            hint=_EXAMPLE,
        )
    for kind, name in engines.items():
        if kind not in selectable or not isinstance(name, str):
            raise UsageError(
                f"{path.name}: [engines] has {kind} = {name!r}",
                hint=f"kinds are {', '.join(selectable)}; each takes the name of an engine in quotes",
            )
    return engines
