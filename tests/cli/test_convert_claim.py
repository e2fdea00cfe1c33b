"""Two runs of `trident convert` into one folder: the second is refused, and nothing of the first is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from trident_core.cli.convert import convert
from trident_core.errors import InputError
from trident_core.export.claim import Claim
from trident_core.pipeline import Line


@pytest.mark.parametrize("form", ["csv", "lobster"])
def test_a_folder_that_another_run_writes_into(day: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    other = Claim(out)
    with pytest.raises(InputError, match="another run is writing"):
        convert(str(day), out, form=form, json=True)
    assert list(out.iterdir()) == []
    other.release()
    other.release()
    for _ in range(2):  # a run that has ended holds nothing
        convert(str(day), out, form=form, json=True)
    assert (out / "trident.json").is_file()
    Claim(out).release()


@pytest.mark.parametrize("form", ["csv", "lobster"])
def test_a_run_that_fails_lets_the_folder_go(
    day: Path, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Line) -> None:
        raise InputError("the disk has gone")

    monkeypatch.setattr(Line, "run", fail)
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(InputError, match="gone"):
        convert(str(day), out, form=form, json=True)
    Claim(out).release()


def test_a_claim_leaves_nothing_and_needs_no_folder(tmp_path: Path) -> None:
    Claim(tmp_path).release()
    assert list(tmp_path.iterdir()) == []
    Claim(tmp_path / "nowhere").release()
