"""Hostile names, outputs and signals at the command line: one line and an exit code, never a traceback."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

COMMAND = [sys.executable, "-m", "trident_core.cli"]


def one_line_error(done: subprocess.CompletedProcess[str], code: int) -> str:
    """The error's line, after a check that there is one, with a hint and that exit code, and no more."""
    lines = done.stderr.splitlines()
    assert done.returncode == code, done.stderr
    assert [line.split(":")[0] for line in lines] == ["error", "hint"], done.stderr
    assert "a bug in Trident" not in done.stderr
    return lines[0]


def rename_symbols(day: bytes, names: list[bytes]) -> bytes:
    """A day of which the stocks of R messages are `names`, in turn."""
    out = bytearray(day)
    at = count = 0
    while at + 2 <= len(out):
        if out[at + 2] == ord("R"):
            out[at + 13 : at + 21] = names[count % len(names)].ljust(8)
            count += 1
        at += 2 + int.from_bytes(out[at : at + 2], "big")
    return bytes(out)


@pytest.fixture(scope="module")
def raw(day: Path) -> bytes:
    import gzip

    return gzip.decompress(day.read_bytes())


@pytest.mark.parametrize(
    "command", [["run", "DAY"], ["demo", "DAY", "--out"], ["simulate"]], ids=lambda c: c[0]
)
def test_a_name_too_long_is_no_bug(trident: Run, day: Path, command: list[str]) -> None:
    words = [str(day) if word == "DAY" else word for word in command]
    assert "File name too long" in one_line_error(trident(*words, "x" * 300), 3)


@pytest.mark.parametrize("name", ["[/b]", "[red]a\nb\x1b[31m", b"-\xff:smile:"], ids=repr)
def test_names_of_files_and_stores_are_shown_literally(
    trident: Run, day: Path, tmp_path: Path, name: str | bytes
) -> None:
    text = os.fsdecode(name)
    path = tmp_path / text
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(day.read_bytes())
    shown = text.encode("unicode_escape").decode()
    done = trident("info", "--", os.path.relpath(path, tmp_path), env={"COLUMNS": "200"})
    assert done.returncode == 0, done.stderr
    assert shown in done.stdout
    missing = one_line_error(trident("info", "--", text + "-missing"), 3)
    assert shown in missing
    store = text + "-store"
    assert trident("run", "--", path, store).returncode == 0
    verified = trident("verify", "--", store)
    assert verified.returncode == 0
    assert f"{shown}-store: sound" in verified.stdout.replace("\n", "\\n")


def test_symbols_are_shown_literally(trident: Run, raw: bytes, tmp_path: Path) -> None:
    """Brackets are no markup, colons no emoji, and nothing reaches the terminal that would steer it."""
    names = [b"[/b]", b"[red]a", b":smile:", b"\x1b[31mAB", b"\n\r\tX", b"\xff\x80\x9bA", b"(+*"]
    (tmp_path / "day").write_bytes(rename_symbols(raw, names))
    wide = {"COLUMNS": "200"}
    for args in (["replay", "day"], ["replay", "day", "--symbols", "[/b],:smile:"], ["demo", "day"]):
        done = trident(*args, env=wide)
        assert done.returncode == 0, done.stderr
        assert "[/b]" in done.stdout
        assert all(c.isprintable() or c == "\n" for c in done.stdout)
    shown = trident("query", "demo-out/store", "--symbol", ".", "--limit", "500", env=wide).stdout
    for name in ("[/b]", "[red]a", ":smile:", r"\x1b[31mAB", r"\n\r\tX", "(+*"):
        assert f" {name} " in shown
    assert r"\x80" in shown


def test_an_output_without_unicode_loses_no_figure(trident: Run, day: Path) -> None:
    done = trident("replay", day, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0, done.stderr
    assert "book digest" in done.stdout
    assert done.stdout.isascii()


@pytest.mark.parametrize("words", [["info", "DAY"], ["--version"], ["info", "--help"]])
def test_output_that_cannot_be_written(day: Path, words: list[str]) -> None:
    args = [str(day) if word == "DAY" else word for word in words]
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, *args], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert "No space left" in one_line_error(done, 3)


def test_errors_that_cannot_be_written_keep_their_exit_code() -> None:
    with open("/dev/full", "w") as full:
        assert subprocess.run([*COMMAND, "verify", "nowhere"], stderr=full, timeout=60).returncode == 4


@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&- <&-"])
def test_closed_descriptors_never_become_files(day: Path, tmp_path: Path, closed: str) -> None:
    """A run whose output is closed stores the day as any other; nothing is written into its files."""
    shell = f'exec "$@" {closed}'
    words = ["sh", "-c", shell, "sh", *COMMAND, "run", str(day), str(tmp_path / "store")]
    assert subprocess.run(words, timeout=60, capture_output=True).returncode == 0
    verify = subprocess.run(
        [*COMMAND, "verify", str(tmp_path / "store"), "--json"], capture_output=True, timeout=60
    )
    assert json.loads(verify.stdout)["events"] == 6_000


def test_a_reader_that_has_gone_does_not_hide_damage(trident: Run, day: Path, tmp_path: Path) -> None:
    trident("run", day, "store")
    segment = tmp_path / "store" / "00000000.seg"
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    for options in ([], ["--json"]):
        process = subprocess.Popen(
            [*COMMAND, "verify", "store", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=60) == 4
        assert process.stderr is not None
        assert process.stderr.read() == b""
        process.stderr.close()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda n: n.name)
def test_a_signal_at_any_moment_is_quiet(day: Path, number: signal.Signals) -> None:
    """During start and imports the signal ends the process itself, later the command; never a traceback."""
    for delay in (0.1, 0.2, 0.4, 0.8, 1.6):
        process = subprocess.Popen(
            [*COMMAND, "info", str(day)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        time.sleep(delay)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
        assert process.returncode in (0, 130, -number), err
        if delay >= 0.4:  # before that, the interpreter itself may still be starting
            assert b"Traceback" not in err


@pytest.mark.parametrize(("number", "command"), [(signal.SIGINT, "info"), (signal.SIGTERM, "replay")])
def test_interrupted_while_waiting_for_input(number: signal.Signals, command: str, raw: bytes) -> None:
    """What was read so far is shown, and the exit code says that it is not all."""
    process = subprocess.Popen(
        [*COMMAND, command, "-", "--json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(raw)
    process.stdin.flush()
    deadline = time.monotonic() + 60
    left = 1
    while time.monotonic() < deadline and left:  # until all is taken out of the pipe
        time.sleep(0.1)
        left = int.from_bytes(fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4)), sys.byteorder)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert json.loads(out)["events"] > 0
    assert b"Traceback" not in err


def test_resuming_with_another_input_stores_nothing(trident: Run, raw: bytes, tmp_path: Path) -> None:
    """Else two days would be mixed in one store, and no check could ever tell."""
    (tmp_path / "half").write_bytes(raw[: len(raw) // 2])
    (tmp_path / "whole").write_bytes(raw)
    (tmp_path / "shifted").write_bytes(raw[2 + int.from_bytes(raw[:2], "big") :])
    (tmp_path / "short").write_bytes(raw[: len(raw) // 4])
    half = json.loads(trident("run", "half", "store", "--json").stdout)["stored"]
    for name, what in (("shifted", "another message"), ("short", "ends before the store does")):
        assert what in one_line_error(trident("run", name, "store", "--resume"), 2)
        assert json.loads(trident("verify", "store", "--json").stdout)["events"] == half
    assert json.loads(trident("run", "whole", "store", "--resume", "--json").stdout)["stored"] == 6_000 - half


@pytest.mark.parametrize(
    "config", ["x =", "[engines]\nbook = 1", "[other]", "engines = 'x'", "\udcff"], ids=repr
)
def test_a_configuration_that_makes_no_sense(trident: Run, tmp_path: Path, config: str) -> None:
    (tmp_path / "trident.toml").write_bytes(config.encode("utf-8", "surrogateescape"))
    assert "trident.toml" in one_line_error(trident("verify", "nowhere"), 2)


def test_debugging_that_is_off_is_off(trident: Run) -> None:
    for value in ("", "0"):
        one_line_error(trident("verify", "nowhere", env={"TRIDENT_DEBUG": value}), 4)
    assert "Traceback" in trident("verify", "nowhere", env={"TRIDENT_DEBUG": "1"}).stderr
