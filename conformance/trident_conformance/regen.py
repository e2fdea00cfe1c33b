"""`python -m trident_conformance.regen [--check]`: keep the vectors, their derived fields and the manifest
together.

Without --check: lays the files out, fills in what is derived (digests of books and markets; the frames of a
parser vector that has only rows), and writes MANIFEST.json. With --check: changes nothing. Both hold every
expectation that was made by hand against the reference engines, and fail, naming the vector, when one
differs: an expectation is corrected by hand or not at all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trident_conformance import drive, expect, matching, sequences, vectors
from trident_conformance.engines import reference
from trident_conformance.vectors import MANIFEST, Vector, dump
from trident_core.contracts import Kind, Matcher
from trident_core.engines import make_matcher
from trident_core.errors import PatternError, TridentError
from trident_core.session import Session

_KEYS = {
    kind: frozenset(names.split())
    for kind, names in {
        "parser": "frames rows events counts directory details anomalies consumed status next_seq lenient",
        "book": "events tops top_locates states effects levels orders state locates anomalies digest",
        "matching": "market story levels live state_digest",
        "query": "pattern flags full raw yes no data limit spans position",
        "sequence": "events types ts symbols conditions where match define per within measures all_rows "
        "matches keys rows position",
    }.items()
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0 when all is well, 1 with the problems on standard error."""
    parser = argparse.ArgumentParser(
        prog="python -m trident_conformance.regen", description=__doc__.split("\n\n")[0]
    )
    parser.add_argument("--check", action="store_true", help="verify only; change nothing")
    check = parser.parse_args(arguments).check
    if not check:
        for path in vectors.topics():
            _rewrite(path)
    vectors.load.cache_clear()
    problems = [problem for path in vectors.topics() for problem in judge(path)]
    if not check and not problems:
        MANIFEST.write_text(dump(manifest()) + "\n", encoding="utf-8")
    problems += manifest_problems()
    for problem in problems:
        print(problem, file=sys.stderr)
    count = sum(entry["count"] for entry in manifest()["files"].values())
    print(f"{count} vectors in {len(vectors.topics())} files: {len(problems)} problems")
    return 1 if problems else 0


# --- derived fields and the manifest ------------------------------------------------------------------------


def _rewrite(path: Path) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    for vector in data["vectors"]:
        if data["kind"] == "book":
            book = reference(Kind.BOOK).make(Session())
            book.apply(vectors.to_events(vector["events"]))
            vector["digest"] = book.digest().hex()
        if data["kind"] == "matching":
            matching.derive(_market(vector), vector)
        if data["kind"] == "parser" and "frames" not in vector:
            vector["frames"] = [
                _frame(letter, row) for letter, rows in vector["rows"].items() for row in rows
            ]
    path.write_text(dump(data) + "\n", encoding="utf-8")


def _frame(letter: str, row: dict[str, Any]) -> str:
    """One typed row as hex, a blank between fields, the length in front, by the table of fields."""
    from trident_parser.itch50 import BY_LETTER

    message = BY_LETTER[letter]
    parts = [message.length.to_bytes(2, "big"), letter.encode("ascii")]
    for field in message.fields[1:]:
        value = row[field.name]
        parts.append(value.encode("latin-1") if isinstance(value, str) else value.to_bytes(field.size, "big"))
    return " ".join(part.hex() for part in parts)


def manifest() -> dict[str, Any]:
    """What MANIFEST.json must say of the files as they are."""
    files = {}
    for path in vectors.topics():
        raw = path.read_bytes()
        data = json.loads(raw)
        files[path.name] = {
            "sha256": hashlib.sha256(raw).hexdigest(),
            "kind": data["kind"],
            "count": len(data["vectors"]),
            "reason": data["about"],
        }
    return {"about": "Written by `python -m trident_conformance.regen`; held by its --check.", "files": files}


def manifest_problems() -> list[str]:
    if not MANIFEST.exists():
        return [f"{MANIFEST.name} is missing: run python -m trident_conformance.regen"]
    said, found = json.loads(MANIFEST.read_text(encoding="utf-8"))["files"], manifest()["files"]
    return [
        f"{name}: MANIFEST.json says {said.get(name)}, the folder has {found.get(name)}"
        for name in sorted({*said, *found})
        if said.get(name) != found.get(name)
    ]


# --- expectations -------------------------------------------------------------------------------------------


def judge(path: Path) -> list[str]:
    """What is wrong with a file's vectors: their form, or an expectation that the reference does not meet."""
    data = json.loads(path.read_text(encoding="utf-8"))
    problems = [] if path.read_text(encoding="utf-8") == dump(data) + "\n" else [f"{path.name}: not laid out"]
    names = [vector["name"] for vector in data["vectors"]]
    problems += [f"{path.name}: {name} twice" for name in sorted({n for n in names if names.count(n) > 1})]
    for vector in vectors.load(path.stem):
        unknown = vector.data.keys() - _KEYS[vector.kind] - {"name", "reason"}
        if unknown or not vector.data.get("reason"):
            problems.append(f"{path.name}: {vector.name}: fields {sorted(unknown)} unknown, or no reason")
        try:
            _JUDGES[vector.kind](vector)
        except (AssertionError, TridentError, KeyError, ValueError) as error:
            problems.append(f"{path.name}: {vector.name}: {error!r}")
    return problems


def _judge_parser(vector: Vector) -> None:
    data = vector.data
    make = reference(Kind.PARSER).make
    frames = vectors.to_frames(data["frames"])
    expect.parsed(drive.parse(make(Session(), lenient=data.get("lenient", False)), [frames]), data)
    for letter, rows in data.get("rows", {}).items():
        drive.equal("frames", data["frames"], [_frame(letter, row) for row in rows])
        table = make(Session()).parse_tables(frames)[letter]
        drive.equal("encoded rows", make(Session()).encode_rows(letter, table).tobytes(), frames.tobytes())
        for name, value in rows[0].items():
            text = value.encode("latin-1") if isinstance(value, str) else value
            drive.equal(f"row's {name}", table[name][0], text)


def _judge_book(vector: Vector) -> None:
    events, tops, effects = vectors.book_arrays(vector.data)
    book = reference(Kind.BOOK).make(Session())
    found = drive.apply(book, [events])
    drive.same(found.tops, tops, "tops")
    drive.same(found.effects, effects, "effects")
    expect.books(book, vector.data)


def _market(data: dict[str, Any]) -> Matcher:
    return make_matcher(reference(Kind.BOOK).spec, Session(), matching.rules(data))


def _judge_matching(vector: Vector) -> None:
    matching.hold(_market(vector.data), vector.data)


def _judge_query(vector: Vector) -> None:
    data = vector.data
    options = {name: data[name] for name in ("flags", "full", "raw") if name in data}
    compile_ = reference(Kind.QUERY).make().compile
    if "position" in data:
        try:
            compile_(data["pattern"], **options)
        except PatternError as error:
            drive.equal("position", error.position, data["position"])
            return
        raise AssertionError("the reference accepts the pattern")
    program = compile_(data["pattern"], **options)
    if "spans" in data:
        found = program.spans(data["data"].encode("latin-1"), data.get("limit", 0))
        drive.equal("spans", [list(span) for span in found], data["spans"])
        return
    for answer, values in ((True, data["yes"]), (False, data["no"])):
        for value in values:
            text = value.encode("latin-1")
            column = vectors.to_column([text])
            drive.equal(f"match of {value!r}", program.match(column).tolist(), [answer])


def _judge_sequence(vector: Vector) -> None:
    engine = reference(Kind.SEQUENCE).make()
    if "position" not in vector.data:
        sequences.hold(engine, vector.data)
        return
    error = sequences.refused(engine, vector.data)
    drive.equal("position", None if error is None else error.position, vector.data["position"])


_JUDGES = {
    "parser": _judge_parser, "book": _judge_book, "matching": _judge_matching, "query": _judge_query,
    "sequence": _judge_sequence,
}  # fmt: skip

if __name__ == "__main__":
    sys.exit(main())
