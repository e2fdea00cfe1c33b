"""`trident plugins`: what is installed, what is selected and why, and what is quarantined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trident_core.cli import common
from trident_core.cli.output import coloured, emit, table
from trident_core.contracts import CommandSpec, EngineSpec, Kind
from trident_core.engines import missing_modules, notes
from trident_core.errors import PluginError
from trident_core.plugins import ALLOWED_VARIABLE, OWN_DISTRIBUTION, Registry, registry

if TYPE_CHECKING:
    from rich.console import Console


def plugins(json: common.Json = False) -> None:
    """List every engine and command with its state, contract, capabilities and origin."""
    found = registry()
    found.complete(patient=True)
    rows = _rows(found)
    emit(rows, as_json=json, render=lambda out: _render(out, rows))


#: Of a plugin that is not used.
_NOTHING_SAID: Final[dict[str, Any]] = {
    "notes": [], "selected_by": "", "contract": "", "capabilities": [], "summary": "",
}  # fmt: skip


def _rows(found: Registry) -> list[dict[str, Any]]:
    chosen: dict[tuple[str, str], str] = {}
    for kind in Kind:
        if kind not in (Kind.FEED, Kind.COMMAND):
            try:
                selection = found.select(kind)
            except PluginError:
                continue
            chosen[kind, selection.spec.name] = selection.origin
    rows = [
        {
            "kind": str(r.spec.kind),
            "name": r.spec.name,
            **_state(r.spec),
            "notes": notes(r.spec),
            "selected_by": chosen.get((r.spec.kind, r.spec.name), ""),
            "contract": ".".join(map(str, r.spec.contract)),
            "capabilities": sorted(r.spec.capabilities) if isinstance(r.spec, EngineSpec) else [],
            "plugin": r.plugin,
            "distribution": r.distribution,
            "version": r.version,
            "summary": r.spec.summary,
        }
        for r in found.registered()
    ]
    rows += [
        {
            "kind": q.kind,
            "name": q.name or q.plugin,
            "status": "quarantined",
            "reason": q.reason,
            "hint": q.hint,
            **_NOTHING_SAID,
            "plugin": q.plugin,
            "distribution": q.distribution,
            "version": q.version,
        }
        for q in found.quarantine
    ]
    rows += [
        {
            "kind": "",
            "name": point.name,
            "status": "left out",
            "reason": f"not among those that {ALLOWED_VARIABLE} allows, or --no-plugins was given",
            "hint": "",
            **_NOTHING_SAID,
            "plugin": point.name,
            "distribution": point.dist.name if point.dist else "",
            "version": point.dist.version if point.dist else "",
        }
        for point in found.left_out
    ]
    return rows


def _state(spec: EngineSpec | CommandSpec) -> dict[str, str]:
    """`unavailable` is an engine whose `requires` are not all installed."""
    missing = missing_modules(spec) if isinstance(spec, EngineSpec) else []
    if not missing:
        return {"status": "ok", "reason": "", "hint": ""}
    hint = spec.install_hint if isinstance(spec, EngineSpec) else ""
    return {"status": "unavailable", "reason": f"requires {', '.join(missing)}", "hint": hint}


_COLOURS = {"quarantined": "red", "unavailable": "yellow", "left out": "yellow"}


def _render(out: Console, rows: list[dict[str, Any]]) -> None:
    shown = table("", "kind", "name", "status", "selected", "~what it is")
    for row in rows:
        status = coloured((row["status"], _COLOURS[row["status"]])) if row["status"] in _COLOURS else "ok"
        about = "; ".join(filter(None, (row["summary"], row["reason"], row["hint"])))
        if row["capabilities"]:
            about += f" ({', '.join(row['capabilities'])})"
        if row["distribution"] != OWN_DISTRIBUTION:
            contract = f", contract {row['contract']}" if row["contract"] else ""
            about += f" [{row['distribution']} {row['version']}{contract}]"
        shown.add_row(row["kind"], row["name"], status, row["selected_by"], about)
    out.print(shown)
    for row in rows:
        for note in row["notes"]:
            out.print(f"note: {row['kind']} {row['name']}: {note}", soft_wrap=True)
    own = next((row for row in rows if row["distribution"] == OWN_DISTRIBUTION), None)
    if own:
        out.print(
            f"where nothing else is said: {OWN_DISTRIBUTION} {own['version']}, contract {own['contract']}"
        )
