"""Entry point: the feeds of this package."""

from __future__ import annotations

from collections.abc import Sequence

from trident_core.contracts import Capability, EngineSpec, Kind
from trident_core.hookspecs import hookimpl


@hookimpl
def trident_register_feeds() -> Sequence[EngineSpec]:
    """Day files, captures and recorded SoupBinTCP streams of ITCH 5.0; LOBSTER; Databento."""
    return [
        EngineSpec(
            kind=Kind.FEED,
            name="itch-file",
            factory="trident_feed.files:ItchFileFeed",
            summary="NASDAQ day files: messages behind 2-byte lengths, compressed or not",
            capabilities=frozenset({Capability.LENIENT}),
            protocols=("itch50",),
        ),
        EngineSpec(
            kind=Kind.FEED,
            name="capture",
            factory="trident_feed.capture:CaptureFeed",
            summary="pcap and pcapng: MoldUDP64 over UDP, SoupBinTCP over TCP",
            capabilities=frozenset({Capability.LENIENT}),
            protocols=("itch50",),
        ),
        EngineSpec(
            kind=Kind.FEED,
            name="soup-file",
            factory="trident_feed.files:SoupFileFeed",
            summary="a recorded SoupBinTCP stream, without the packets around it",
            protocols=("itch50",),
        ),
        EngineSpec(
            kind=Kind.FEED,
            name="lobster",
            factory="trident_feed.lobster:LobsterFeed",
            summary="LOBSTER message files (csv): the order flow of one symbol for one day",
            protocols=("lobster-csv",),
        ),
        EngineSpec(
            kind=Kind.FEED,
            name="databento",
            factory="trident_feed.databento:DatabentoFeed",
            summary="Databento's DBN files of the schema mbo",
            protocols=("dbn-mbo",),
            requires=("databento_dbn",),
            install_hint="pip install 'trident-core[databento]'",
        ),
    ]
