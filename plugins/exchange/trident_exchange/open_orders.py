"""Orders that live, as their owners know them."""

from __future__ import annotations

from dataclasses import dataclass

from trident_exchange.ouch.messages import EnterOrder
from trident_exchange.ouch.options import Tag, option

#: An account's UserRefIdx and UserRefNum in one number: the matcher's id of an order.
_INDEX_SHIFT, _ACCOUNT_SHIFT = 32, 40
#: Sides that a sale can change between: long, short, short exempt.
SALES = frozenset("STE")


def order_id(account: int, index: int, user_ref_num: int) -> int:
    """Unique in the day: a UserRefNum is used once on each channel of an account."""
    return account << _ACCOUNT_SHIFT | index << _INDEX_SHIFT | user_ref_num


def channel(options: object) -> int:
    """The UserRefIdx of an appendage; 0 when it has none."""
    index = option(options, Tag.USER_REF_IDX)  # type: ignore[arg-type]
    return index if isinstance(index, int) else 0


@dataclass(slots=True)
class OpenOrder:
    """`entered`: the order as it was entered, with what replaces made of it. `leaves` is open, `executed`
    counts over the chain of replaces. `expires`: its time, 0 if it has none. `by`: why the exchange cancels
    it. `raw`: the Enter Order as it came."""

    account: int
    index: int
    entered: EnterOrder
    leaves: int
    executed: int = 0
    expires: int = 0
    by: str = ""
    raw: bytes = b""


class Account:
    """One user: where its numbers stand."""

    __slots__ = ("disabled", "firm", "last", "name", "number")

    def __init__(self, number: int, name: str, firm: str) -> None:
        self.number = number
        self.name = name
        self.firm = firm
        self.disabled = False
        self.last: dict[int, int] = {}

    def use(self, index: int, user_ref_num: int) -> bool:
        """Take a number; False if it or a higher one was taken before: then it was sent again."""
        if user_ref_num <= self.last.get(index, 0):
            return False
        self.last[index] = user_ref_num
        return True
