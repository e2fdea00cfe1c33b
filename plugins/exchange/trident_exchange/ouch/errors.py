"""What is raised for bytes that are not OUCH, and for values that OUCH cannot hold."""

from __future__ import annotations

from trident_core.errors import InputError


class OuchError(InputError):
    """A message that is refused. `offset` is the byte of the message at which it stops making sense."""

    def __init__(self, message: str, *, offset: int, hint: str = "") -> None:
        super().__init__(f"{message}, at offset {offset} of the message", hint=hint)
        self.reason = message
        self.offset = offset
