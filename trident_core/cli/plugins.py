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
    # What is the same for all, built-in engines of one contract, would only take width from the rest.
    strangers = any(row["distribution"] != OWN_DISTRIBUTION for row in rows)
    shown = table(
        "", "kind", "name", "status", "selected", *(["contract", "~from"] * strangers), "~what it is"
    )
    for row in rows:
        status = "ok" if row["status"] == "ok" else coloured((row["status"], "red"))
        able = f" ({', '.join(row['capabilities'])})" if row["capabilities"] else ""
        origin = [row["contract"], f"{row['distribution']} {row['version']}"] * strangers
        shown.add_row(row["kind"], row["name"], status, row["selected_by"], *origin, row["summary"] + able)
    out.print(shown)
    if not strangers:
        out.print(f"all built in, {OWN_DISTRIBUTION} {rows[0]['version']}, contract {rows[0]['contract']}")
