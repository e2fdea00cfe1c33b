"""SoupBinTCP: both ends as state machines; MoldUDP64 requests and gaps; the end of a GLIMPSE snapshot."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core.stats import Anomalies
from trident_exchange import glimpse, mold, soup
from trident_feed.mold import parse
from trident_feed.soup import SoupReader
from trident_feed.write import soup_packet


def logged_in() -> tuple[soup.ServerEnd, soup.ClientEnd]:
    server, client = soup.ServerEnd(), soup.ClientEnd()
    (login,) = server.receive(client.login("ALFA", "secret", sequence=5))
    assert login == soup.Login("ALFA", "secret", "", 5)
    assert client.receive(server.accept("DAY1", 5)) == [soup.Accepted("DAY1", 5)]
    assert (client.session, client.next, client.state, server.state) == (
        "DAY1",
        5,
        soup.State.OPEN,
        soup.State.OPEN,
    )
    return server, client


def test_a_session_from_login_to_its_end() -> None:
    server, client = logged_in()
    assert server.receive(soup.unsequenced(b"one") + soup.CLIENT_HEARTBEAT + soup.LOGOUT) == [
        soup.Unsequenced(b"one"), soup.Heartbeat(), soup.Logout(),
    ]  # fmt: skip
    sent = (
        soup_packet("S", b"five")
        + soup.SERVER_HEARTBEAT
        + soup_packet("S", b"six")
        + soup.debug("é")
        + server.end()
    )
    assert client.receive(sent) == [
        soup.Sequenced(5, b"five"), soup.Heartbeat(), soup.Sequenced(6, b"six"), soup.Debug("\\xe9"),
        soup.EndOfSession(),
    ]  # fmt: skip
    assert client.state is soup.State.ENDED


def test_a_login_that_is_refused() -> None:
    server, client = soup.ServerEnd(), soup.ClientEnd()
    server.receive(client.login("NOBODY"))
    assert client.receive(server.refuse("A")) == [soup.Refused("A")]
    assert (server.state, client.state) == (soup.State.ENDED, soup.State.ENDED)


@pytest.mark.parametrize(
    ("data", "reason", "offset"),
    [
        (b"\x00\x01S", "a packet of type b'S'", 0),
        (b"\x00\x01?", "a packet of type", 0),
        (b"\x00\x02RR", "a client heartbeat packet of length 2", 0),
        (b"\x00\x01R\x10\x00U", "unsequenced data packet of length 4096", 3),
        (b"\x00\x01R\x00\x02Ux", "data before the login", 3),
        (soup.ClientEnd().login("A") * 2, "a second login", 49),
        (soup_packet("L", b"x" * 40), "a login of 40 bytes", 0),
        (soup_packet("L", b"\x01" * 46), "the user is", 0),
        (soup_packet("L", b"user  " + b" " * 20 + b"12x".rjust(20)), "the sequence number is", 0),
    ],
)
def test_what_a_client_may_not_send(data: bytes, reason: str, offset: int) -> None:
    with pytest.raises(soup.SoupError, match=reason) as caught:
        soup.ServerEnd().receive(data)
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (soup_packet("S", b"x"), "sequenced data packet out of turn"),
        (soup_packet("A", b"DAY1".ljust(10) + b"zero".rjust(20)), "the sequence number"),
        (soup_packet("U", b"x"), "a packet of type b'U'"),
    ],
)
def test_what_a_server_may_not_send(data: bytes, reason: str) -> None:
    with pytest.raises(soup.SoupError, match=reason):
        soup.ClientEnd().receive(data)


def test_a_login_that_does_not_fit_is_the_callers_fault() -> None:
    for arguments in (("TOOLONG",), ("A", "much too long"), ("A", "", "", -1)):
        with pytest.raises(soup.SoupError):
            soup.ClientEnd().login(*arguments)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(0, 1 << 30))
def test_any_split_of_the_stream_gives_the_same(payloads: list[bytes], seed: int) -> None:
    random_ = random.Random(seed)
    server, client = logged_in()
    up = b"".join(soup.unsequenced(each) for each in payloads)
    down = b"".join(soup_packet("S", each) for each in payloads)
    got: list[soup.FromClient] = []
    answers: list[soup.FromServer] = []
    for data, end, out in ((up, server, got), (down, client, answers)):
        at = 0
        while at < len(data):
            step = random_.randint(1, 9)
            out += end.receive(data[at : at + step])  # type: ignore[arg-type]
            at += step
    assert got == [soup.Unsequenced(each) for each in payloads]
    assert answers == [soup.Sequenced(5 + i, each) for i, each in enumerate(payloads)]
    reader = SoupReader(Anomalies(), Counter(), contiguous=True)  # the feed's own
    runs = reader.push(server.accept("DAY1", 5) + down, 0)
    assert sum(len(run.blocks) for run in runs) == len(payloads)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.booleans())
def test_any_bytes_are_understood_or_refused(data: bytes, after_login: bool) -> None:
    server, client = logged_in() if after_login else (soup.ServerEnd(), soup.ClientEnd())
    for end in (server, client):
        try:
            end.receive(data)
        except soup.SoupError as error:
            refused = error
        else:
            continue
        assert refused.hint or "out of turn" in refused.message


def test_the_clock_tells_what_is_due() -> None:
    clock = soup.Clock(10.0)
    assert not clock.heartbeat_due(10.9)
    assert clock.heartbeat_due(11.0)
    assert not clock.lost(25.0)
    assert clock.lost(25.1)


# --- MoldUDP64


def test_datagrams_hold_all_messages_and_no_more_than_fits() -> None:
    messages = [bytes((65 + i % 20,)) * (1 + i * 7 % 50) for i in range(400)]
    blocks = b"".join(len(each).to_bytes(2, "big") + each for each in messages)
    datagrams = mold.packets("DAY1", 11, blocks)
    assert all(len(each) <= mold.DATAGRAM_MAX for each in datagrams)
    reader = mold.MoldReader("DAY1", 11)
    assert [message for each in datagrams for message in reader.receive(each)] == messages
    assert reader.missing() is None
    first = parse(datagrams[1])
    assert first is not None
    assert first.sequence == 11 + parse(datagrams[0]).messages  # type: ignore[union-attr]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_lost_doubled_and_swapped_datagrams_are_made_good_by_requests(data: st.DataObject) -> None:
    messages = data.draw(st.lists(st.binary(max_size=60), min_size=1, max_size=60))
    blocks = b"".join(len(each).to_bytes(2, "big") + each for each in messages)
    one_by_one = [
        mold.packets("S", 1 + i, len(each).to_bytes(2, "big") + each)[0] for i, each in enumerate(messages)
    ]
    shuffled = data.draw(st.permutations(one_by_one))
    kept = shuffled[: data.draw(st.integers(0, len(shuffled)))] + shuffled[:2]
    reader = mold.MoldReader()
    out = [
        message
        for each in [*kept, mold.end_of_session("S", len(messages) + 1)]
        for message in reader.receive(each)
    ]
    while (gap := reader.missing()) is not None:
        assert not reader.ended
        asked = mold.decode_request(mold.encode_request(gap))
        assert asked == gap
        (answer, *_) = mold.packets("S", gap.sequence, blocks_from(blocks, gap.sequence - 1, gap.count))
        out += reader.receive(answer)
    assert out == messages
    assert reader.ended


def blocks_from(blocks: bytes, skip: int, count: int) -> bytes:
    at = start = 0
    for number in range(skip + count):
        if number == skip:
            start = at
        at += 2 + int.from_bytes(blocks[at : at + 2], "big")
    return blocks[start:at]


def test_foreign_datagrams_are_counted() -> None:
    reader = mold.MoldReader("DAY1")
    assert reader.receive(b"nonsense") == []
    assert reader.receive(mold.heartbeat("DAY2", 9)) == []
    assert reader.foreign == 2
    assert reader.receive(mold.heartbeat("DAY1", 9)) == []
    assert reader.missing() == mold.Request("DAY1", 1, 8)


@pytest.mark.parametrize(
    "data", [b"", b"x" * 19, b"\x01" * 20, b"DAY1".ljust(10) + bytes(10), b"DAY1".ljust(10) + b"\xff" * 10]
)
def test_bad_requests_are_refused(data: bytes) -> None:
    with pytest.raises(mold.MoldError):
        mold.decode_request(data)


# --- GLIMPSE


def test_the_end_of_a_snapshot() -> None:
    message = glimpse.encode_snapshot_end(1_234)
    assert len(message) == 21
    assert glimpse.decode_snapshot_end(message) == 1_234
    for bad in (b"", b"G", b"A" + b"1".ljust(20), b"G" + b"x".ljust(20)):
        with pytest.raises(glimpse.GlimpseError):
            glimpse.decode_snapshot_end(bad)
