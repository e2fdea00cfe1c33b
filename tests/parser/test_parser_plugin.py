"""The package registers its parsers as a stranger's would, without importing them."""

from __future__ import annotations

import subprocess
import sys

from trident_core.contracts import CONTRACT_VERSIONS, Kind
from trident_parser.plugin import trident_register_parsers
from trident_parser.reference import ReferenceParser


def test_reference_is_registered() -> None:
    spec = next(spec for spec in trident_register_parsers() if spec.name == "reference")
    assert (spec.kind, spec.contract) == (Kind.PARSER, CONTRACT_VERSIONS[Kind.PARSER])
    assert spec.capabilities == {"encode", "tables", "lenient"}
    assert spec.protocols == ("itch50",)
    assert spec.load() is ReferenceParser


def test_listing_imports_no_parser() -> None:
    code = "import sys, trident_parser.plugin as p; p.trident_register_parsers(); print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "trident_parser.plugin" in modules
    assert not {"trident_parser.reference", "trident_parser.encode", "numba"} & set(modules)
