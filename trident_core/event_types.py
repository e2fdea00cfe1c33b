"""Which types of events have what (docs/contracts/parser.md): in the others a field means nothing."""

from __future__ import annotations

from typing import Final

#: A price.
PRICED: Final = b"AFCUPQIKJVO"
#: A number of shares.
SHARED: Final = b"RAFECXUPQI"
#: An MPID, in the first four bytes of `aux`.
ATTRIBUTED: Final = b"FL"
#: An order that they are about.
OF_ORDERS: Final = b"AFECXDU"
