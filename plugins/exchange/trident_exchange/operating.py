"""What the operator of the exchange can ask for, as JSON in the journal: {"do": "halt", "symbol": "AAPL"}
…"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trident_core.contracts.book import TradingState
from trident_core.contracts.matching import CrossType, Op
from trident_core.errors import UsageError
from trident_exchange import publishing
from trident_exchange.entering import command
from trident_exchange.ouch.messages import SystemEvent

if TYPE_CHECKING:
    from trident_exchange.core import Core

#: Words of an operator and the state they mean.
STATES: Final = {
    "trade": TradingState.TRADING, "halt": TradingState.HALTED, "pause": TradingState.PAUSED,
    "call": TradingState.QUOTATION,
}  # fmt: skip
CROSSES: Final = {"opening": CrossType.OPENING, "closing": CrossType.CLOSING, "halt": CrossType.HALT}
HELP: Final = "halt|pause|call|trade [SYMBOL], cross|indicate opening|closing|halt [SYMBOL], end"


def parse_line(line: str, symbols: tuple[str, ...]) -> dict[str, Any]:
    """An operator's line as a command. Raises UsageError, with what there is."""
    words = line.split()
    do = words[0].lower() if words else ""
    asked: dict[str, Any] = {"do": do}
    rest = words[1:]
    if do in ("cross", "indicate") and rest and rest[0].lower() in CROSSES:
        asked["type"] = rest.pop(0).lower()
    elif do not in STATES and (do != "end" or rest):
        raise UsageError(f"not a command: {line.strip()!r}", hint=HELP)
    if len(rest) > 1:
        raise UsageError(f"too much in {line.strip()!r}", hint=HELP)
    if rest:
        asked["symbol"] = rest[0].upper()
        if asked["symbol"] not in symbols:
            raise UsageError(f"no symbol {rest[0]!r}", hint=f"there are {', '.join(symbols[:8])} …")
    return asked


def operate(core: Core, asked: dict[str, Any], ts: int) -> None:
    """Carry out a command out of the journal."""
    do, symbols = asked["do"], core.config.symbols
    named = asked.get("symbol")
    locates = [symbols.index(named) + 1] if named else range(1, len(symbols) + 1)
    if do == "open":
        _open(core, ts)
    elif do == "end":
        _end(core, ts)
    elif do in STATES:
        for locate in locates:
            core.command(command(Op.STATE, ts, locate=locate, code=STATES[do]))
    elif do in ("cross", "indicate"):
        code = CROSSES[asked["type"]]
        for locate in locates:
            if do == "cross":
                core.crossing(locate, code)
            core.command(command(Op.UNCROSS if do == "cross" else Op.INDICATE, ts, locate=locate, code=code))
    else:
        raise UsageError(f"not a command: {asked!r}", hint=HELP)


def _open(core: Core, ts: int) -> None:
    core.publish(publishing.system_event(ts, "O"))
    core.publish(publishing.directory(ts, core.config.symbols))
    for locate in range(1, len(core.config.symbols) + 1):
        core.command(command(Op.STATE, ts, locate=locate, code=ord(core.config.rules.state)))
    core.publish(publishing.system_event(ts, "S"))
    core.publish(publishing.system_event(ts, "Q"))


def _end(core: Core, ts: int) -> None:
    if core.ended:
        return
    core.publish(publishing.system_event(ts, "M"))
    core.command(command(Op.END_OF_DAY, ts))
    core.publish(publishing.system_event(ts, "E"))
    core.publish(publishing.system_event(ts, "C"))
    core.tell_all(SystemEvent(ts, "E"))
    core.ended = True
