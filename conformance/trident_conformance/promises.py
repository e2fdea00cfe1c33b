"""Does an engine have at all what a capability that it declares is about? One sentence instead of a hundred
AttributeErrors."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any, Final

from trident_conformance.engines import Engine
from trident_core.contracts import Capability, Encoder, Kind, TableParser
from trident_core.engines import members
from trident_core.session import Session


def _program(engine: Engine) -> Any:
    return engine.make().compile("a")


def _search(engine: Engine) -> Any:
    return engine.make().search("A", Session())


#: (kind, capability) -> whose methods, how to get it, and which.
_METHODS: Final[dict[tuple[Kind, str], tuple[str, Any, list[str]]]] = {
    (Kind.QUERY, Capability.SPANS): ("its program", _program, ["spans"]),
    (Kind.QUERY, Capability.ENDS): ("its program", _program, ["ends"]),
    (Kind.QUERY, Capability.SETS): ("it", lambda engine: engine.make(), ["compile_set"]),
    (Kind.SEQUENCE, Capability.STREAMING): ("its search", _search, ["save", "load"]),
    (Kind.PARSER, Capability.TABLES): ("it", lambda engine: engine.make(Session()), members(TableParser)),
    (Kind.PARSER, Capability.ENCODE): ("it", lambda engine: engine.make(Session()), members(Encoder)),
    (Kind.BOOK, Capability.MATCH): ("its factory", lambda engine: engine.factory, ["matcher"]),
}
#: (kind, capability) -> what must be called with an option of its own, how to get it, and the option.
_OPTIONS: Final[dict[tuple[Kind, str], tuple[str, Any, str]]] = {
    (Kind.QUERY, Capability.FIRST): ("its compile()", lambda engine: engine.make().compile, "first"),
    (Kind.STORE, Capability.FILESYSTEM): ("its factory", lambda engine: engine.factory, "filesystem"),
}


@cache
def lacking(engine: Engine, capability: str) -> str:
    """What is not there of a declared capability, in words; empty when nothing is missing at first sight."""
    at = (engine.kind, capability)
    try:
        if at in _METHODS:
            whose, get, names = _METHODS[at]
            holder = get(engine)
            missing = [f"{name}()" for name in names if not hasattr(holder, name)]
            what = f"{whose} has no {' and no '.join(missing)}"
        elif at in _OPTIONS:
            whose, get, name = _OPTIONS[at]
            taken = inspect.signature(get(engine)).parameters.values()
            takes = any(one.name == name or one.kind is one.VAR_KEYWORD for one in taken)
            missing = [] if takes else [name]
            what = f"{whose} takes no {name}="
        else:
            return ""
    except Exception:  # whatever is wrong with it, the case itself says it better
        return ""
    return f"declares {capability}, but {what}" if missing else ""
