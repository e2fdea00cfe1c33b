"""OUCH 5.0, Nasdaq's order entry protocol: messages, options, codes, and a codec in both directions."""

from trident_exchange.ouch.codec import decode_inbound, decode_outbound, encode
from trident_exchange.ouch.errors import OuchError
from trident_exchange.ouch.options import Options, Tag, option

__all__ = ["Options", "OuchError", "Tag", "decode_inbound", "decode_outbound", "encode", "option"]
