"""The letters and numbers of OUCH 5.0 that mean something, with what they mean (appendices B, C and D)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Final

#: A price that stands for a market order (1.2).
MARKET_PRICE: Final = 0x7FFFFFFF
#: The highest limit price: 199,999.9900 (1.2).
PRICE_MAX: Final = 1_999_999_900
#: Shares of one order: less than this (2.1).
QUANTITY_LIMIT: Final = 1_000_000


class Tif(StrEnum):
    """Time in force (2.1)."""

    DAY = "0"
    IOC = "3"
    GTX = "5"  # extended hours
    GTT = "6"  # good till time: needs the option ExpireTime
    AFTER_HOURS = "E"


class Display(StrEnum):
    """Display (2.1)."""

    VISIBLE = "Y"
    HIDDEN = "N"
    ATTRIBUTABLE = "A"


class Reject(IntEnum):
    """Reasons of Rejected (appendix C)."""

    QUOTE_UNAVAILABLE = 0x01
    DESTINATION_CLOSED = 0x02
    INVALID_DISPLAY = 0x03
    INVALID_MAX_FLOOR = 0x04
    INVALID_PEG_TYPE = 0x05
    FAT_FINGER = 0x06
    HALTED = 0x07
    ISO_NOT_ALLOWED = 0x08
    INVALID_SIDE = 0x09
    PROCESSING_ERROR = 0x0A
    CANCEL_PENDING = 0x0B
    FIRM_NOT_AUTHORIZED = 0x0C
    INVALID_MIN_QUANTITY = 0x0D
    NO_CLOSING_REFERENCE_PRICE = 0x0E
    OTHER = 0x0F
    CANCEL_NOT_ALLOWED = 0x10
    PEGGING_NOT_ALLOWED = 0x11
    CROSSED_MARKET = 0x12
    INVALID_QUANTITY = 0x13
    INVALID_CROSS_ORDER = 0x14
    REPLACE_NOT_ALLOWED = 0x15
    ROUTING_NOT_ALLOWED = 0x16
    INVALID_SYMBOL = 0x17
    TEST = 0x18
    LATE_LOC_TOO_AGGRESSIVE = 0x19
    RETAIL_NOT_ALLOWED = 0x1A
    INVALID_MIDPOINT_POST_ONLY_PRICE = 0x1B
    INVALID_DESTINATION = 0x1C
    INVALID_PRICE = 0x1D
    SHARES_EXCEED_THRESHOLD = 0x1E
    EXCEEDS_MAXIMUM_NOTIONAL = 0x1F
    RISK_AGGREGATE_EXPOSURE = 0x20
    RISK_MARKET_IMPACT = 0x21
    RISK_RESTRICTED_STOCK = 0x22
    RISK_SHORT_SELL_RESTRICTED = 0x23
    RISK_ISO = 0x24
    RISK_ADV_LIMIT = 0x25
    RISK_FAT_FINGER = 0x26
    RISK_LOCATE_REQUIRED = 0x27
    RISK_SYMBOL_RATE = 0x28
    RISK_PORT_RATE = 0x29
    RISK_DUPLICATE_RATE = 0x2A
    RISK_SHORT_SELL = 0x2B
    RISK_MARKET_ORDER = 0x2C
    RISK_PRE_MARKET = 0x2D
    RISK_POST_MARKET = 0x2E
    RISK_SHORT_SELL_EXEMPT = 0x2F
    RISK_NOTIONAL = 0x30
    RISK_MAX_QUANTITY = 0x31
    REG_SHO_NOT_AVAILABLE = 0x32


class Cancel(StrEnum):
    """Reasons of Canceled (appendix B)."""

    REGULATORY = "D"
    CLOSED = "E"
    POST_ONLY_NMS = "F"
    POST_ONLY = "G"
    HALTED = "H"
    IMMEDIATE_OR_CANCEL = "I"
    MARKET_COLLARS = "K"
    SELF_MATCH_PREVENTION = "Q"
    SUPERVISORY = "S"
    TIMEOUT = "T"
    USER_REQUESTED = "U"
    OPEN_PROTECTION = "X"
    SYSTEM = "Z"


class Liquidity(StrEnum):
    """Liquidity flags of Executed (appendix D), those that this exchange gives."""

    ADDED = "A"
    REMOVED = "R"
    OPENING_CROSS = "O"
    CLOSING_CROSS = "C"
    HALT_CROSS = "H"
    ADDED_HIDDEN = "J"


class Aiq(StrEnum):
    """AIQStrategy: what happens where two orders of one owner meet (capitals: of the MPID, else of the
    firm)."""

    CANCEL_OLDEST = "O"
    CANCEL_NEWEST = "W"
    DECREMENT_BOTH = "D"
    DECREMENT_BOTH_NO_DETAILS = "Y"


def reject_text(reason: int) -> str:
    """What a reject reason means: "Invalid symbol"."""
    try:
        name = Reject(reason).name
    except ValueError:
        return f"reason 0x{reason:04X}"
    return name.replace("_", " ").capitalize()


CANCEL_TEXTS: Final[Mapping[str, str]] = {each.value: each.name.replace("_", " ").lower() for each in Cancel}
