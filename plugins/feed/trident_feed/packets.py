"""Captured packets down to UDP and TCP: link layers, VLAN tags, IPv4 and IPv6.

Checksums are not verified: captures of a sending or offloading host carry wrong ones, and the switch or the
card has thrown damaged packets away before. Fragments are not put together: market data has none.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_VLAN_TAGS: Final = frozenset((0x8100, 0x88A8, 0x9100))
_IPV4: Final = 0x0800
_IPV6: Final = 0x86DD
#: BSD loopback: the address family, in the capturing host's byte order: IPv4 and the systems' IPv6.
_LOOPBACK_FAMILIES: Final = frozenset((2, 10, 24, 28, 30))
_UDP: Final = 17
_TCP: Final = 6
#: IPv6 extension headers that have the common layout: hop-by-hop, routing, destination, mobility, HIP, shim6.
_EXTENSIONS: Final = frozenset((0, 43, 60, 135, 139, 140))
_FRAGMENT: Final = 44
_AUTHENTICATION: Final = 51

#: Link types that are read (tcpdump.org/linktypes).
LINK_NULL: Final = 0
LINK_ETHERNET: Final = 1
LINK_LOOP: Final = 108
LINK_SLL: Final = 113
LINK_SLL2: Final = 276
LINKS_RAW_IP: Final = frozenset((12, 14, 101, 228, 229))

Address = tuple[bytes, int]


class Datagram(NamedTuple):
    """A UDP datagram. `cut`: the capture holds less of it than its header says."""

    src: Address
    dst: Address
    payload: bytes
    cut: bool


class Segment(NamedTuple):
    """A TCP segment. `flags` as on the wire (FIN 1, SYN 2, RST 4)."""

    src: Address
    dst: Address
    seq: int
    flags: int
    payload: bytes
    cut: bool


class Skipped(NamedTuple):
    """Why a packet is neither: `short` means that it ends inside its own headers."""

    reason: str
    short: bool = False


_SHORT: Final = Skipped("packet shorter than its headers", short=True)


def decode(link: int, data: bytes, cut: bool = False) -> Datagram | Segment | Skipped:
    """What the packet carries. `cut`: the capture shortened the packet."""
    if link == LINK_ETHERNET:
        return _by_ethertype(data, 12, cut)
    if link == LINK_SLL:
        return _by_ethertype(data, 14, cut)
    if link == LINK_SLL2:
        protocol = int.from_bytes(data[:2], "big")
        return _network(protocol, data, 20, cut) if len(data) >= 20 else _SHORT
    if link in LINKS_RAW_IP:
        return _raw_ip(data, 0, cut)
    if link in (LINK_NULL, LINK_LOOP):
        family = data[:4]
        if len(family) < 4:
            return _SHORT
        if not _LOOPBACK_FAMILIES & {int.from_bytes(family, "little"), int.from_bytes(family, "big")}:
            return Skipped("not IP")
        return _raw_ip(data, 4, cut)
    return Skipped(f"link type {link}")


def _by_ethertype(data: bytes, at: int, cut: bool) -> Datagram | Segment | Skipped:
    """`at` is where the EtherType stands; each VLAN tag puts another one four bytes on."""
    kind = int.from_bytes(data[at : at + 2], "big")
    while kind in _VLAN_TAGS:
        at += 4
        kind = int.from_bytes(data[at : at + 2], "big")
    return _network(kind, data, at + 2, cut) if len(data) >= at + 2 else _SHORT


def _raw_ip(data: bytes, at: int, cut: bool) -> Datagram | Segment | Skipped:
    if len(data) <= at:
        return _SHORT
    return _network(_IPV6 if data[at] >> 4 == 6 else _IPV4, data, at, cut)


def _network(protocol: int, data: bytes, at: int, cut: bool) -> Datagram | Segment | Skipped:
    if protocol == _IPV4:
        return _ipv4(data, at, cut)
    if protocol == _IPV6:
        return _ipv6(data, at, cut)
    return Skipped("not IP")


def _ipv4(data: bytes, at: int, cut: bool) -> Datagram | Segment | Skipped:
    if len(data) < at + 20:
        return _SHORT
    header = (data[at] & 15) * 4
    if data[at] >> 4 != 4 or header < 20:
        return Skipped("not IP")
    total = int.from_bytes(data[at + 2 : at + 4], "big")
    if int.from_bytes(data[at + 6 : at + 8], "big") & 0x3FFF:
        return Skipped("IP fragment")
    end = at + total if total else len(data)  # 0: the card was to cut it into segments (TSO)
    if total and total < header:
        return Skipped("not IP")
    return _transport(
        data[at + 9], data, at + header, end, (data[at + 12 : at + 16], data[at + 16 : at + 20]), cut
    )


def _ipv6(data: bytes, at: int, cut: bool) -> Datagram | Segment | Skipped:
    if len(data) < at + 40:
        return _SHORT
    if data[at] >> 4 != 6:
        return Skipped("not IP")
    length = int.from_bytes(data[at + 4 : at + 6], "big")
    end = at + 40 + length if length else len(data)  # 0: a jumbogram
    hosts = (data[at + 8 : at + 24], data[at + 24 : at + 40])
    kind = data[at + 6]
    at += 40
    while kind in _EXTENSIONS or kind in (_FRAGMENT, _AUTHENTICATION):
        if len(data) < at + 8:
            return _SHORT
        if kind == _FRAGMENT:
            if int.from_bytes(data[at + 2 : at + 4], "big") & 0xFFF9:
                return Skipped("IP fragment")
            size = 8
        elif kind == _AUTHENTICATION:
            size = (data[at + 1] + 2) * 4
        else:
            size = (data[at + 1] + 1) * 8
        kind = data[at]
        at += size
    return _transport(kind, data, at, end, hosts, cut)


def _transport(
    kind: int, data: bytes, at: int, end: int, hosts: tuple[bytes, bytes], cut: bool
) -> Datagram | Segment | Skipped:
    """`end`: where the IP packet ends by its own header; what follows is padding of the link."""
    if kind not in (_UDP, _TCP):
        return Skipped(f"IP protocol {kind}")
    need = 8 if kind == _UDP else 20
    if min(len(data), end) < at + need:
        return _SHORT
    src = hosts[0], int.from_bytes(data[at : at + 2], "big")
    dst = hosts[1], int.from_bytes(data[at + 2 : at + 4], "big")
    if kind == _UDP:
        length = int.from_bytes(data[at + 4 : at + 6], "big")
        if length:  # 0: a jumbogram
            end = min(end, at + length) if length >= 8 else at
        if end < at + 8:
            return Skipped("UDP length below 8")
        return Datagram(src, dst, data[at + 8 : end], cut or end > len(data))
    header = (data[at + 12] >> 4) * 4
    if header < 20:
        return Skipped("TCP header below 20 bytes")
    seq = int.from_bytes(data[at + 4 : at + 8], "big")
    return Segment(src, dst, seq, data[at + 13], data[at + header : end], cut or end > len(data))
