"""`trident plugins`: what is installed, what is selected and why, and what is quarantined."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trident_core.cli import common
from trident_core.cli.output import coloured, emit, table
from trident_core.contracts import EngineSpec, Kind
from trident_core.errors import PluginError
from trident_core.plugins import OWN_DISTRIBUTION, Registry, registry

if TYPE_CHECKING:
    from rich.console import Console


def plugins(json: common.Json = False) -> None:
    """List every engine and command with its state, contract, capabilities and origin."""
    found = registry()
    rows = _rows(found)
    emit(rows, as_json=json, render=lambda out: _render(out, rows))


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
            "status": "ok",
            "selected_by": chosen.get((r.spec.kind, r.spec.name), ""),
            "contract": ".".join(map(str, r.spec.contract)),
            "capabilities": sorted(r.spec.capabilities) if isinstance(r.spec, EngineSpec) else [],
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
            "selected_by": "",
            "contract": "",
            "capabilities": [],
            "distribution": q.distribution,
            "version": q.version,
            "summary": f"{q.reason}; {q.hint}" if q.hint else q.reason,
        }
        for q in found.quarantine
    ]
    return rows


def _render(out: Console, rows: list[dict[str, Any]]) -> None:
    shown = table("", "kind", "name", "status", "selected", "~what it is")
    for row in rows:
        status = "ok" if row["status"] == "ok" else coloured((row["status"], "red"))
        about = row["summary"]
        if row["capabilities"]:
            about += f" ({', '.join(row['capabilities'])})"
        if row["distribution"] != OWN_DISTRIBUTION:
            contract = f", contract {row['contract']}" if row["contract"] else ""
            about += f" [{row['distribution']} {row['version']}{contract}]"
        shown.add_row(row["kind"], row["name"], status, row["selected_by"], about)
    out.print(shown)
    own = next((row for row in rows if row["distribution"] == OWN_DISTRIBUTION), None)
    if own:
        out.print(
            f"where nothing else is said: {OWN_DISTRIBUTION} {own['version']}, contract {own['contract']}"
        )
