"""Vectors of matching engines: commands and reports as people write them, and how engines are held to them.

A command is its op and words: `NEW 1 B 10@100 IOC owner=3`, `REPLACE 1 7@ id2=2`, `STATE QUOTATION`. A number
alone is the id, `qty@price` may lack a side, names are those of the enums, everything else is `column=value`.
A report is its kind and the columns that are not 0, without seq and ts; locate 1 is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from trident_conformance import drive, evidence
from trident_conformance.orders import to_commands
from trident_core.contracts import (
    CrossType,
    MarketRules,
    Matcher,
    Op,
    OrderFlag,
    OrderKind,
    Reason,
    ReportFlag,
    ReportKind,
    SelfTrade,
    TimeInForce,
    TradingState,
)
from trident_core.orders import REPORT, Commands, Reports, submit_all

_NAMED: Final[dict[str, tuple[str, int]]] = {
    **{kind.name: ("kind", int(kind)) for kind in OrderKind},
    **{tif.name: ("tif", int(tif)) for tif in TimeInForce},
    **{state.name: ("code", int(state)) for state in TradingState},
    **{cross.name: ("code", int(cross)) for cross in CrossType},
    "B": ("side", ord("B")),
    "S": ("side", ord("S")),
}
_NO_SYMBOL: Final = (Op.MASS_CANCEL, Op.DISCONNECT, Op.END_OF_DAY)
_COLUMNS: Final = (
    "id", "id2", "ref", "ref2", "side", "qty", "price", "leaves", "leaves2", "owner", "owner2", "mpid",
    "code", "reason", "locate",
)  # fmt: skip


def command(text: str, at: int) -> dict[str, Any]:
    """The columns of a command; `ts` counts commands in microseconds unless it is told."""
    name, *words = text.split()
    op = Op[name]
    row: dict[str, Any] = {"op": int(op), "ts": 1000 * at, "locate": 0 if op in _NO_SYMBOL else 1}
    if op is Op.NEW:
        row |= {"kind": int(OrderKind.LIMIT), "tif": int(TimeInForce.DAY)}
    for word in words:
        column, equals, value = word.partition("=")
        if equals:
            row[column] = _value(column, value)
        elif word in _NAMED:
            row[_NAMED[word][0]] = _NAMED[word][1]
        elif word in OrderFlag.__members__:
            row["flags"] = row.get("flags", 0) | int(OrderFlag[word])
        elif "@" in word:
            row |= {k: int(n) for k, n in zip(("qty", "price"), word.split("@"), strict=True) if n}
        else:
            row["id"] = int(word)
    return row


def _value(column: str, text: str) -> int:
    if column == "stp" and text in SelfTrade.__members__:
        return int(SelfTrade[text])
    if column == "mpid":
        return int.from_bytes(text.encode("ascii"), "little")
    return ord(text) if column in ("op", "kind", "tif", "side", "code") and len(text) == 1 else int(text)


def told(report: Any) -> str:
    """One row as text."""
    words = [ReportKind(int(report["kind"])).name]
    for column in _COLUMNS:
        value = report[column]
        if column == "mpid":
            text = bytes(value).rstrip(b"\0").decode("latin-1")
        elif column in ("side", "code"):
            text = chr(value) if value else ""
        elif column == "reason":
            text = Reason(int(value)).name if value else ""
        else:
            text = str(value) if value and not (column == "locate" and value == 1) else ""
        words += [f"{column}={text}"] if text else []
    return " ".join(words + [str(flag.name) for flag in ReportFlag if report["flags"] & flag])


def rules(data: dict[str, Any]) -> MarketRules:
    """The market of a vector: fields of MarketRules; `stp` by name, `ticks` as pairs."""
    fields = dict(data.get("market", {}))
    if "stp" in fields:
        fields["stp"] = SelfTrade[fields["stp"]]
    if "ticks" in fields:
        fields["ticks"] = tuple(map(tuple, fields["ticks"]))
    return MarketRules(**fields)


def commands(data: dict[str, Any]) -> Commands:
    return to_commands([command(lines[0], at) for at, lines in enumerate(data["story"], 1)])


def hold(market: Matcher, data: dict[str, Any], *, room: int = 65_536, whole: bool = False) -> None:
    """The story of a vector: each command alone, or all in one call; then what can be read at the end."""
    asked = commands(data)
    wanted = [line for lines in data["story"] for line in lines[1:]]
    if whole:
        found = submit_all(market, asked, room)
    else:
        parts = [submit_all(market, asked[i : i + 1], room) for i in range(len(asked))]
        for lines, part in zip(data["story"], parts, strict=True):
            drive.equal(f"reports of {lines[0]!r}", [told(row) for row in part], lines[1:])
        found = np.concatenate([np.zeros(0, REPORT), *parts])
    drive.equal("reports", [told(row) for row in found], wanted)
    drive.equal("seq", found["seq"].tolist(), list(range(1, len(found) + 1)))
    times = [max(asked["ts"][: at + 1].tolist()) for at, lines in enumerate(data["story"]) for _ in lines[1:]]
    drive.equal("ts", found["ts"].tolist(), times)
    for locate, sides in data["levels"].items():
        for side, levels in sides.items():
            drive.equal(
                f"levels of {locate} {side}",
                [list(row) for row in market.levels(int(locate), side).tolist()],
                levels,
            )
    drive.equal("live orders", market.live_orders(), data["live"])
    drive.equal("state digest", market.state_digest().hex(), data["state_digest"])
    drive.equal("violations", market.validate(), [])


def derive(market: Matcher, data: dict[str, Any]) -> None:
    """Fills in what is derived: the state digest. Everything else is corrected by hand or not at all."""
    submit_all(market, commands(data))
    data["state_digest"] = market.state_digest().hex()


def submit(market: Matcher, asked: Commands, sizes: Sequence[int] = (1 << 20,), room: int = 500) -> Reports:
    """All reports: commands in calls of these sizes, over and over, with `room` rows for each call."""
    evidence.fed(market, commands=[asked])
    found, at, turn = [np.zeros(0, REPORT)], 0, 0
    while at < len(asked):
        size = sizes[turn % len(sizes)]
        found += _calls(market, asked[at : at + size], room)
        at, turn = at + size, turn + 1
    return np.concatenate(found)


def _calls(market: Matcher, asked: Commands, room: int) -> list[Reports]:
    """Until all of `asked` is carried out. Rows beyond those that are counted must stay as they were."""
    asked, found = asked.copy(), []
    asked.flags.writeable = False
    more = True
    while len(asked) or more:
        rows = drive.canaries(room, REPORT)
        taken, written, more = market.submit(asked, rows)
        assert 0 <= taken <= len(asked), f"took {taken} of {len(asked)} commands"
        assert 0 <= written <= room, f"wrote {written} rows where there is room for {room}"
        assert drive.untouched(rows[written:]), f"wrote beyond the {written} rows that it counts"
        assert taken or written or not (len(asked) or more), "goes round without end"
        found.append(rows[:written])
        asked = asked[taken:]
    return found


def alike(market: Matcher, found: Reports, law: Matcher, expected: Reports) -> None:
    """Two markets reported the same, and are the same in everything that can be read."""
    if len(found) == len(expected):
        drive.same(found, expected, "reports")
    drive.equal("reports", [told(row) for row in found], [told(row) for row in expected])
    drive.equal("locates", market.locates().tolist(), law.locates().tolist())
    for locate in (*map(int, law.locates()), 65_534):
        drive.same(market.top(locate), law.top(locate), f"top of {locate}")
        drive.same(market.orders(locate), law.orders(locate), f"orders of {locate}")
        for side in "BS":
            drive.same(market.levels(locate, side), law.levels(locate, side), f"levels of {locate} {side}")
        drive.equal(f"state of {locate}", market.state(locate), law.state(locate))
    drive.equal("live orders", market.live_orders(), law.live_orders())
    drive.equal("digest", market.digest().hex(), law.digest().hex())
    drive.equal("state digest", market.state_digest().hex(), law.state_digest().hex())
    drive.equal("violations", market.validate(), [])
