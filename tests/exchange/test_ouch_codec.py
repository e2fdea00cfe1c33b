"""OUCH 5.0: genuine captures, every message there and back, hostile bytes."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core.stats import Anomalies
from trident_exchange.ouch import OuchError, Tag, decode_inbound, decode_outbound, encode, option, quick
from trident_exchange.ouch import messages as m
from trident_exchange.ouch.layout import BY_CLASS, INBOUND, OUTBOUND, Appendage, Layout
from trident_exchange.ouch.options import FORMATS, decode_options, encode_options
from trident_feed.cursor import Cursor
from trident_feed.packets import Segment, decode
from trident_feed.pcap import read_pcap

ASCII = st.characters(min_codepoint=0x20, max_codepoint=0x7E)


class _File:
    """The least that a Cursor asks for."""

    def __init__(self, path: Path) -> None:
        self.file = path.open("rb")

    def read(self, n: int) -> bytes:
        return self.file.read(n)


def segments(path: Path) -> Iterator[bytes]:
    """Payloads of the TCP segments of a capture."""
    source = _File(path)
    for packet in read_pcap(Cursor(source), Anomalies()):  # type: ignore[arg-type]
        carried = decode(packet.link, packet.data, packet.cut)
        assert isinstance(carried, Segment)
        yield carried.payload
    source.file.close()


def one(shared: Callable[..., Path], name: str) -> tuple[str, bytes]:
    """Packet type and payload of the only SoupBinTCP packet of a capture."""
    (payload,) = segments(shared("data", "pcap", "Nasdaq.Nsm.Ouch.v5.0", f"{name}.pcap"))
    length = int.from_bytes(payload[:2], "big")
    assert len(payload) == 2 + length
    return chr(payload[2]), payload[3:]


# --- captures of the real exchange


def test_captured_enter_order(shared: Callable[..., Path]) -> None:
    kind, payload = one(shared, "EnterOrderMessage")
    message = decode_inbound(payload)
    assert kind == "U"
    assert message == m.EnterOrder(
        user_ref_num=113, side="T", quantity=225, symbol="CVLT", price=630_200, time_in_force="0",
        display="Y", capacity="A", intermarket_sweep="N", cross_type="N", cl_ord_id="H8FUB8IV",
        options=((Tag.FIRM, "LIME"),),
    )  # fmt: skip
    assert encode(message) == payload


def test_captured_accepted(shared: Callable[..., Path]) -> None:
    kind, payload = one(shared, "OrderAcceptedMessage")
    message = decode_outbound(payload)
    assert kind == "S"
    assert isinstance(message, m.Accepted)
    assert (message.symbol, message.side, message.quantity, message.price) == ("ADBE", "B", 40, 4_777_800)
    assert (message.order_reference_number, message.order_state) == (0x0F56B4F5, "L")
    assert option(message.options, Tag.FIRM) == "MLRO"
    assert option(message.options, Tag.BBO_WEIGHT_INDICATOR) == "0"
    assert encode(message) == payload


def test_captured_cancel_and_canceled(shared: Callable[..., Path]) -> None:
    kind, payload = one(shared, "CancelOrderMessage")
    request = decode_inbound(payload)
    assert (kind, request) == ("U", m.CancelOrder(0x00752E71, 0, None))
    assert encode(request) == payload
    kind, payload = one(shared, "CanceledMessage")
    answer = decode_outbound(payload)
    assert kind == "S"
    assert isinstance(answer, m.Canceled)
    assert (answer.user_ref_num, answer.quantity, answer.reason, answer.options) == (
        0x00753A8D,
        40,
        "U",
        None,
    )
    assert encode(answer) == payload


@pytest.mark.parametrize(("name", "kind"), [("ServerHeartbeatPacket", "H"), ("ClientHeartbeatPacket", "R")])
def test_captured_heartbeats(shared: Callable[..., Path], name: str, kind: str) -> None:
    assert one(shared, name) == (kind, b"")


# --- there and back


def texts(width: int) -> st.SearchStrategy[str]:
    return st.text(ASCII, max_size=width).filter(lambda text: not text.endswith(" "))


def values(form: str) -> st.SearchStrategy[object]:
    if form == "c":
        return st.text(ASCII, min_size=1, max_size=1)
    if form.endswith("s"):
        return texts(int(form[:-1]))
    bits = 8 * struct.calcsize(form)
    if form == "i":
        return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    return st.integers(0, (1 << bits) - 1)


def appendages() -> st.SearchStrategy[tuple[tuple[int, object], ...]]:
    known = st.sampled_from(sorted(FORMATS)).flatmap(
        lambda tag: st.tuples(st.just(int(tag)), values(FORMATS[tag]))
    )
    other = st.tuples(st.sampled_from([0, 8, 19, 200, 255]), st.binary(max_size=20))
    return st.lists(st.one_of(known, other), max_size=8, unique_by=lambda item: item[0]).map(tuple)


@st.composite
def ouch_messages(draw: st.DrawFn, layout: Layout) -> m.Message:
    fields = [draw(values(form)) for form in layout.formats]
    if layout.appendage is Appendage.NEVER:
        return layout.kind(*fields)
    options = appendages() if layout.appendage is Appendage.ALWAYS else st.one_of(st.none(), appendages())
    return layout.kind(*fields, draw(options))


def codec_of(layout: Layout) -> Callable[[bytes], m.Message]:
    return decode_inbound if layout in INBOUND else decode_outbound


@pytest.mark.parametrize("layout", [*INBOUND, *OUTBOUND], ids=lambda layout: layout.kind.__name__)
def test_every_message_there_and_back(layout: Layout) -> None:
    decode_one = codec_of(layout)

    @settings(max_examples=25, deadline=None)
    @given(ouch_messages(layout))
    def check(message: m.Message) -> None:
        data = encode(message)
        assert data[0] == ord(layout.letter)
        assert decode_one(data) == message
        assert encode(decode_one(data)) == data

    check()


@settings(max_examples=50, deadline=None)
@given(ouch_messages(BY_CLASS[m.EnterOrder]), st.integers(0, 1 << 60), st.integers(0, 1 << 60))
def test_the_quick_answers_are_those_of_the_codec(e: m.EnterOrder, ts: int, number: int) -> None:
    assert quick.accepted(encode(e), ts, number) == encode(
        m.Accepted(ts, e.user_ref_num, e.side, e.quantity, e.symbol, e.price, e.time_in_force, e.display,
                   number, e.capacity, e.intermarket_sweep, e.cross_type, "L", e.cl_ord_id, e.options)
    )  # fmt: skip
    assert quick.executed(ts, e.user_ref_num, e.quantity, e.price, "R", number) == encode(
        m.Executed(ts, e.user_ref_num, e.quantity, e.price, "R", number)
    )
    assert quick.canceled(ts, e.user_ref_num, e.quantity, "U") == encode(
        m.Canceled(ts, e.user_ref_num, e.quantity, "U")
    )


def test_sizes_are_those_of_the_specification() -> None:
    sizes = {each.kind.__name__: each.size for each in (*INBOUND, *OUTBOUND)}
    assert (sizes["EnterOrder"], sizes["ReplaceOrder"], sizes["Accepted"], sizes["Replaced"]) == (
        45,
        38,
        62,
        66,
    )
    assert len(BY_CLASS) == len(INBOUND) + len(OUTBOUND) == 25


# --- hostile


@settings(max_examples=250, deadline=None)
@given(st.binary(max_size=90), st.booleans())
def test_any_bytes_decode_exactly_or_are_refused_with_a_place(data: bytes, inbound: bool) -> None:
    decode_one = decode_inbound if inbound else decode_outbound
    try:
        message = decode_one(data)
    except OuchError as error:
        refused = error
    else:
        assert encode(message) == data
        return
    assert 0 <= refused.offset <= len(data)
    assert str(refused.offset) in refused.message


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_every_cut_and_every_extra_byte_is_refused(data: st.DataObject) -> None:
    layout = data.draw(st.sampled_from([*INBOUND, *OUTBOUND]))
    whole = encode(data.draw(ouch_messages(layout)))
    decode_one = codec_of(layout)
    cut = data.draw(st.integers(0, len(whole) - 1))
    if not (cut == layout.size and layout.appendage is not Appendage.ALWAYS):
        with pytest.raises(OuchError) as caught:
            decode_one(whole[:cut])
        assert caught.value.offset <= cut
    if len(whole) != layout.size or layout.appendage is Appendage.NEVER:
        with pytest.raises(OuchError):
            decode_one(whole + b"\x00")


def test_refusals_name_the_field_its_offset_and_what_to_do() -> None:
    good = encode(m.EnterOrder(1, "B", 100, "AAPL", 1_500_000, "0", "Y", "A", "N", "N", "id"))
    with pytest.raises(OuchError, match="cut in price, at offset 20") as caught:
        decode_inbound(good[:20])
    assert "45 bytes" in caught.value.hint
    with pytest.raises(OuchError, match=r"symbol of Enter Order .* at offset 12"):
        decode_inbound(good[:12] + b"\x01" + good[13:])
    with pytest.raises(OuchError, match="no message of the client has the type b'A'"):
        decode_inbound(b"A")
    with pytest.raises(OuchError, match="of no bytes"):
        decode_outbound(b"")
    with pytest.raises(OuchError, match="quantity of Enter Order is 4294967296, at offset 6"):
        encode(m.EnterOrder(1, "B", 1 << 32, "AAPL", 1, "0", "Y", "A", "N", "N", "id"))
    with pytest.raises(OuchError, match="symbol of Enter Order"):
        encode(m.EnterOrder(1, "B", 1, "TOOLONGNAME", 1, "0", "Y", "A", "N", "N", "id"))


@pytest.mark.parametrize(
    ("appendage", "reason"),
    [
        (b"\x00", "the length of the appendage is cut"),
        (b"\x00\x03\x05\x02", "says 3 bytes and 2 follow"),
        (b"\x00\x01\x00", "a TagValue of 0 bytes"),
        (b"\x00\x02\x05\x02", "a TagValue of 5 bytes with 1 left"),
        (b"\x00\x05\x04\x02ABC", "with a value of 3 bytes"),
        (b"\x00\x0c\x05\x02ABCD\x05\x02ABCD", "stands there twice"),
        (b"\x00\x06\x05\x02AB\x00D", "is b'AB"),
    ],
)
def test_bad_appendages(appendage: bytes, reason: str) -> None:
    with pytest.raises(OuchError, match=reason):
        decode_options(b"xx" + appendage, 2)


def test_an_appendage_that_is_too_long_is_refused_both_ways() -> None:
    many = tuple((tag, b"\x00" * 60) for tag in range(100, 110))
    with pytest.raises(OuchError, match="an appendage of 620 bytes"):
        encode_options(many)
    with pytest.raises(OuchError, match="an appendage of 600 bytes"):
        decode_options(b"\x02\x58" + bytes(600), 0)
