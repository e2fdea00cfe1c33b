"""`trident conform`: engines against the contract."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from trident_core.cli import common
from trident_core.errors import PluginError

#: pytest's exit statuses -> ours: something failed or nothing was tested; wrong usage; interrupted.
_EXITS = {1: 5, 5: 5, 2: 130, 4: 2}


def _engines(kind: str) -> object:
    return typer.Option(
        f"--{kind}", metavar="NAME[,NAME…]", show_default=False,
        help=f"Only these {kind} engines, by name or as module:Class[+capability…].",
    )  # fmt: skip


_Feeds = Annotated[str | None, _engines("feed")]
_Parsers = Annotated[str | None, _engines("parser")]
_Books = Annotated[str | None, _engines("book")]
_Stores = Annotated[str | None, _engines("store")]
_Queries = Annotated[str | None, _engines("query")]
_Sequences = Annotated[str | None, _engines("sequence")]
_Pytest = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[-- PYTEST…]", help="Behind --, options of pytest, such as -x.", show_default=False
    ),
]
_Sample = Annotated[
    list[str] | None,
    typer.Option(metavar="FILE", help="A small input for the feeds under test, uncompressed."),
]
_Pairs = Annotated[
    bool, typer.Option("--pairs", help="In the line, every two engines of different kinds together.")
]
_Contract = Annotated[
    str | None,
    typer.Option(metavar="MAJOR.MINOR", help="Hold to this version; rules that came later are left out."),
]
_Known = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Cases that may fail: an id or pattern, then # and the reason, a line."
    ),
]
_Report = Annotated[
    Path | None, typer.Option(metavar="PAGE.html", help="Write the outcome as one page, too.")
]
_Quick = Annotated[
    bool, typer.Option("--quick", help="Fewer and smaller examples: under a minute, for every save.")
]
_Examples = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Random examples for each property; else as many as each is worth, 12 to 400.",
    ),
]
_Seed = Annotated[
    int | None,
    typer.Option(min=0, metavar="N", help="Other random examples; without it the same ones in each run."),
]
_Example = Annotated[
    str | None,
    typer.Option(metavar="EXAMPLE", help="Of the --case, this random example first, as failures print it."),
]
_Show = Annotated[
    str | None,
    typer.Option(metavar="N|all", help="Failures that are shown whole (default: 5); of others the id."),
]
_Keyword = Annotated[
    str | None,
    typer.Option("-k", metavar="WORDS", help="Only cases whose id has these words (as pytest's)."),
]
_Case = Annotated[
    list[str] | None, typer.Option(metavar="ID", help="Only the case with this id, as failures print it.")
]
_Traceback = Annotated[str | None, typer.Option(metavar="STYLE", help="Tracebacks: long, short, line, no.")]
_Jobs = Annotated[
    int | None,
    typer.Option(
        min=1, max=64, metavar="N", help="Processes; else one a processor, at most 4, and one for few cases."
    ),
]


def conform(
    pytest_arguments: _Pytest = None,
    feed: _Feeds = None,
    parser: _Parsers = None,
    book: _Books = None,
    store: _Stores = None,
    query: _Queries = None,
    sequence: _Sequences = None,
    sample: _Sample = None,
    pairs: _Pairs = False,
    contract: _Contract = None,
    known_failures: _Known = None,
    report: _Report = None,
    quick: _Quick = False,
    examples: _Examples = None,
    seed: _Seed = None,
    example: _Example = None,
    show: _Show = None,
    keyword: _Keyword = None,
    case: _Case = None,
    tb: _Traceback = None,
    jobs: _Jobs = None,
    json: common.Json = False,
) -> None:
    """Hold engines to their contract: every suite, every capability that they declare.

    Without an option all installed engines are tested. Exits with 0 when everything that ran has passed,
    5 when something failed or no engine was tested.
    """
    options = {
        "--feed": feed, "--parser": parser, "--book": book, "--store": store, "--query": query,
        "--sequence": sequence, "--contract": contract, "--known-failures": known_failures,
        "--report": report, "--examples": examples, "--seed": seed, "--example": example, "--show": show,
        "-k": keyword, "--tb": tb, "--jobs": jobs,
    }  # fmt: skip
    words = [word for name, value in options.items() if value is not None for word in _pair(name, value)]
    words += [f"--case={one}" for one in case or ()]
    words += [f"--sample={one}" for one in sample or ()]
    words += [name for name, given in (("--pairs", pairs), ("--quick", quick), ("--json", json)) if given]
    _run([*words, *(pytest_arguments or ())])


def _run(words: list[str]) -> None:
    try:
        from trident_conformance.command import run
    except ModuleNotFoundError as error:
        raise PluginError(
            f"the conformance suite needs {error.name}", hint="pip install 'trident-core[conformance]'"
        ) from None

    sys.path.insert(0, os.getcwd())  # as `python -m` does: a module of the folder one works in
    if status := run(words):
        raise typer.Exit(_EXITS.get(status, 1))


def _pair(name: str, value: object) -> list[str]:
    return [name, str(value)] if name == "-k" else [f"{name}={value}"]
