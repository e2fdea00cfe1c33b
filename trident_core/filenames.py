"""What the name of an input says: the session's date, the venue, the version of ITCH.

Names only fill in what the bytes do not carry. Formats are told from the bytes (`Feed.detect`).
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import PurePath
from typing import Final

_ISO: Final = re.compile(r"(?<!\d)((?:19|20)\d\d)[-_.](\d\d)[-_.](\d\d)(?!\d)")
_EIGHT: Final = re.compile(r"(?<!\d)(\d{8})(?!\d)")
_S_FILE: Final = re.compile(r"(?i)^S(\d\d)(\d\d)(\d\d)-v\d")
_VERSION: Final = re.compile(
    r"(?i)(?:ITCH[._-]*v?(\d)[._]?(\d)|(?:ITCH[._-]*|^S\d{6}-)v(\d)[._]?(\d)?)(?!\d)"
)

#: Tokens of known file names -> market identifier code (ISO 10383).
_VENUES: Final = {
    "NASDAQ": "XNAS", "XNAS": "XNAS", "BX": "XBOS", "XBOS": "XBOS", "PSX": "XPSX", "XPSX": "XPSX",
}  # fmt: skip
_LOBSTER: Final = re.compile(r"(?i)_\d{4}-\d\d-\d\d_\d+_\d+_(?:message|orderbook)_\d+\.csv")


def session_date(name: str) -> dt.date | None:
    """The date that a file name carries, or None.

    Known patterns: `MMDDYYYY.NASDAQ_ITCH50`, `YYYYMMDD.BX_ITCH_50`, `YYYYMMDD.PSX_ITCH_50`, `SMMDDYY-v50`,
    LOBSTER's `TICKER_YYYY-MM-DD_…`, and elsewhere a date as YYYY-MM-DD, YYYYMMDD or MMDDYYYY. The two
    eight-digit forms cannot be confused: no month is 19 or 20. Folders are not looked at.
    """
    base = PurePath(name).name
    if match := _S_FILE.match(base):
        month, day, year = (int(group) for group in match.groups())
        return _date(2000 + year if year < 90 else 1900 + year, month, day)
    if match := _ISO.search(base):
        year, month, day = (int(group) for group in match.groups())
        return _date(year, month, day)
    for digits in _EIGHT.findall(base):
        if digits[:2] in ("19", "20"):
            found = _date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
        elif digits[4:6] in ("19", "20"):
            found = _date(int(digits[4:]), int(digits[:2]), int(digits[2:4]))
        else:
            found = None
        if found:
            return found
    return None


def venue(name: str, default: str = "XNAS") -> str:
    """The venue's MIC that a file name tells (XNAS, XBOS for BX, XPSX for PSX), else `default`."""
    base = PurePath(name).name
    if _S_FILE.match(base) or _LOBSTER.search(base):
        return "XNAS"
    for token in re.split(r"[^A-Za-z]+", base.upper()):
        if token in _VENUES:
            return _VENUES[token]
    return default


def itch_version(name: str) -> tuple[int, int] | None:
    """The ITCH version (major, minor) by a file name: `…ITCH50`, `…ITCH_41`, `S010203-v41`; or None."""
    match = _VERSION.search(PurePath(name).name)
    if not match:
        return None
    major, minor = match[1] or match[3], match[2] or match[4] or "0"
    return int(major), int(minor)


def _date(year: int, month: int, day: int) -> dt.date | None:
    try:
        return dt.date(year, month, day)
    except ValueError:
        return None
