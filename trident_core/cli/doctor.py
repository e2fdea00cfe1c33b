"""`trident doctor`: what a bug report needs, and what on this machine costs speed or safety."""

from __future__ import annotations

import os
import platform
import shutil
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trident_core.cli import common
from trident_core.cli.output import coloured, emit, table

if TYPE_CHECKING:
    from rich.console import Console

PACKAGES = (
    "trident-core", "numpy", "numba", "llvmlite", "pluggy", "typer", "rich", "zstandard", "google-crc32c",
)  # fmt: skip
CPU_FEATURES = ("sse4_2", "avx2", "avx512f", "sha_ni", "bmi2", "pclmulqdq", "constant_tsc")


def doctor(json: common.Json = False) -> None:
    """Versions, CPU features, compile cache, huge pages, plugins: each with a verdict."""
    checks = [*_versions(), *_cpu(), *_memory(), *_cache(), *_crc(), *_plugins()]
    emit(checks, as_json=json, render=lambda out: _render(out, checks))


def _check(name: str, value: object, verdict: str = "ok", hint: str = "") -> dict[str, Any]:
    return {"check": name, "value": str(value), "verdict": verdict, "hint": hint}


def _versions() -> list[dict[str, Any]]:
    checks = [_check("python", platform.python_version())]
    for package in PACKAGES:
        try:
            checks.append(_check(package, version(package)))
        except PackageNotFoundError:
            checks.append(_check(package, "missing", "problem", f"pip install {package}"))
    return checks


def _cpu() -> list[dict[str, Any]]:
    flags: set[str] = set()
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "flags":
                flags = set(value.split())
            elif key.strip() == "model name":
                model = value.strip()
    except OSError:
        return [_check("cpu", model, "note", "features are read from /proc/cpuinfo, which is not here")]
    have = [name for name in CPU_FEATURES if name in flags]
    lack = "" if "sse4_2" in flags else "no CRC32C instruction: checksums will be slow"
    return [
        _check("cpu", f"{model}, {os.cpu_count()} cores"),
        _check("cpu features", " ".join(have), "note" if lack else "ok", lack),
    ]


def _memory() -> list[dict[str, Any]]:
    setting = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    try:
        text = setting.read_text()
    except OSError:
        return [_check("huge pages", "unknown", "note", "the kernel does not say")]
    mode = text[text.find("[") + 1 : text.find("]")]
    hint = "" if mode != "never" else "wide days run faster with transparent huge pages set to madvise"
    return [_check("huge pages", mode, "ok" if not hint else "note", hint)]


def _cache() -> list[dict[str, Any]]:
    """The folder of compiled kernels: writable, and how large."""
    from trident_core.jit import cache_folder

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    free = shutil.disk_usage(Path.cwd()).free / 1e9
    hint = (
        "" if writable else "set NUMBA_CACHE_DIR to a folder that can be written: kernels compile each time"
    )
    files = sum(1 for _ in folder.rglob("*.nbc")) if writable else 0
    return [
        _check("compile cache", f"{folder} ({files} kernels)", "ok" if writable else "problem", hint),
        _check("free disk here", f"{free:.1f} GB", "ok" if free > 1 else "note"),
    ]


def _crc() -> list[dict[str, Any]]:
    import google_crc32c

    kind = google_crc32c.implementation
    hint = (
        "" if kind == "c" else "the C library of google-crc32c is missing: checksums are 1,000 times slower"
    )
    return [_check("crc32c", kind, "ok" if kind == "c" else "problem", hint)]


def _plugins() -> list[dict[str, Any]]:
    from trident_core.plugins import registry

    found = registry()
    bad = "; ".join(f"{q.plugin}: {q.reason}" for q in found.quarantine)
    text = f"{len(found.registered())} registered, {len(found.quarantine)} quarantined"
    return [_check("plugins", text, "problem" if bad else "ok", bad)]


def _render(out: Console, checks: list[dict[str, Any]]) -> None:
    rows = table("doctor", "check", "~value", "verdict", "~hint")
    colour = {"ok": "green", "note": "yellow", "problem": "red"}
    for check in checks:
        verdict = check["verdict"]
        rows.add_row(check["check"], check["value"], coloured((verdict, colour[verdict])), check["hint"])
    out.print(rows)
