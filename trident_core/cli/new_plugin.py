"""`trident new-plugin`: the package of a plugin, ready to be filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trident_core.cli import common
from trident_core.cli.output import emit
from trident_core.contracts import Kind


def new_plugin(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help=f"What it adds: {', '.join(kind.value for kind in Kind)}.")
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="How users select it: --book NAME.")],
    into: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Where to write it; else trident-KIND-NAME in this folder."),
    ] = None,
    json: common.Json = False,
) -> None:
    """Write a complete package: the engine, its entry point, tests and a CI file.

    Engines start as the reference, so that they pass the contract at once; replace their methods one by one.
    """
    from trident_core import scaffold

    made = scaffold.plan(common.choice(Kind, kind, "KIND"), name, into)
    scaffold.write(made)
    written = {"folder": str(made.folder), "files": sorted(made.files)}

    def render(out: object) -> None:
        print(f"wrote {made.folder}:")
        for path in sorted(made.files):
            print(f"  {path}")
        print(f"next:\n  cd {made.folder}\n  pip install -e '.[test]'\n  pytest")

    emit(written, as_json=json, render=render)
