"""Runs the commands of a page of recipes and holds their outputs against the page.

    python -m trident_query.sequence.cookbook docs/cookbook.md [--write] [--reference]

Blocks that begin with "```console" hold one command each, `$ trident …`, and what it prints; they run in a
scratch folder, one by one. With --write the page gets the outputs of now; with --reference every query is
also answered by the reference engine, and must print the same.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

_BLOCK = re.compile(
    r"```console\n\$ (?P<command>trident (?:[^\n]*\\\n)*[^\n]*)\n(?P<output>.*?)```", re.DOTALL
)


@dataclass(slots=True)
class Recipe:
    """A command of the page and what the page says it prints."""

    command: str
    output: str

    @property
    def words(self) -> list[str]:
        return shlex.split(self.command.replace("\\\n", " "))[1:]


def recipes(page: str) -> list[Recipe]:
    return [Recipe(found["command"], found["output"]) for found in _BLOCK.finditer(page)]


def output_of(words: Sequence[str]) -> str:
    """What a command prints, without the blanks at the ends of lines."""
    from trident_core.cli.main import build

    out, errors = io.StringIO(), io.StringIO()
    with (
        patch.dict(os.environ, {"COLUMNS": "110"}),
        patch.object(sys, "argv", ["trident", *words]),
        redirect_stdout(out),
        redirect_stderr(errors),
    ):
        try:
            build(list(words))()
        except SystemExit as ended:
            if ended.code not in (None, 0):
                raise RuntimeError(f"{' '.join(words)}: {errors.getvalue() or out.getvalue()}") from None
    lines = [line.rstrip() for line in out.getvalue().split("\n")]
    return "\n".join(lines).strip("\n") + "\n"


def run_page(page: str, *, reference: bool = False) -> Iterator[tuple[Recipe, str, str | None]]:
    """Each recipe, what it prints now, and what the reference engine prints (None: not asked)."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        for recipe in recipes(page):
            now = output_of(recipe.words)
            again = None
            if reference and recipe.words[0] == "query" and "--explain" not in recipe.words:
                again = output_of([*recipe.words, "--sequence", "reference"])
            yield recipe, now, again


def main(argv: Sequence[str]) -> int:
    path = Path(next(word for word in argv if not word.startswith("-")))
    page, wrong = path.read_text(encoding="utf-8"), 0
    for recipe, now, again in run_page(page, reference="--reference" in argv):
        if again is not None and again != now:
            wrong += 1
            print(f"the reference differs: {recipe.command}\n{again}instead of\n{now}")
        if recipe.words[0] != "query":
            continue  # what it prints has times in it
        if "--write" in argv:
            old = f"$ {recipe.command}\n{recipe.output}```"
            page = page.replace(old, f"$ {recipe.command}\n{now}```")
        elif now != recipe.output:
            wrong += 1
            print(f"the page differs: {recipe.command}\n{now}")
    if "--write" in argv:
        path.write_text(page, encoding="utf-8")
    print(f"{len(recipes(page))} commands, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
