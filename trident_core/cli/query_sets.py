"""`trident query --pattern NAME=FIELD:RE … --select EXPR`: many named patterns in one scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trident_core.errors import UsageError

if TYPE_CHECKING:
    from trident_core.search_set import Criterion

_FIELDS = {"symbol": "symbol", "mpid": "mpid", "type": "types"}


def criteria_of(patterns: list[str], flags: str) -> dict[str, Criterion]:
    """Each "NAME=FIELD:RE" as a criterion; a name that comes again adds a field to it, and both must match.

    Raises UsageError for another form, another field, or a field that a name has already.
    """
    from trident_core.search_set import Criterion

    fields: dict[str, dict[str, Any]] = {}
    for text in patterns:
        name, equals, rest = text.partition("=")
        field, colon, pattern = rest.partition(":")
        if not equals or not colon or field not in _FIELDS:
            raise UsageError(
                f"--pattern {text!r} is not NAME=FIELD:RE",
                hint="FIELD is symbol, mpid or type: big=symbol:^A",
            )
        known = fields.setdefault(name, {})
        if _FIELDS[field] in known:
            raise UsageError(f"--pattern {name} has two patterns on the {field}", hint="give them two names")
        known[_FIELDS[field]] = pattern
    return {name: Criterion(flags=flags, **known) for name, known in fields.items()}
