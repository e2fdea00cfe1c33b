"""Tables on terminals of some width."""

from __future__ import annotations

import io

from rich.console import Console

from trident_core.cli.output import table


def test_a_long_title_is_not_folded_to_the_width_of_the_columns() -> None:
    title = "a/long/way/to/a/day/file-2019-12-30.itch50.gz → OUT"
    rows = table(title, "table", ">rows")
    rows.add_row("bbo", "3")
    for _ in range(2):  # printing changes nothing
        console = Console(file=io.StringIO(), width=100)
        console.print(rows)
        assert title in console.file.getvalue().splitlines()[0]
        assert console.file.getvalue().count("OUT") == 1


def test_a_short_title_stays_above_its_columns() -> None:
    rows = table("t", "table", ">rows")
    rows.add_row("bbo", "3")
    console = Console(file=io.StringIO(), width=100)
    console.print(rows)
    assert console.file.getvalue().splitlines()[0].strip() == "t"
