"""The journal in a store, and streams that can be read again from any number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trident_core.dtypes import EVENT
from trident_core.errors import StoreError
from trident_core.session import Session
from trident_exchange.journal import ROW_BYTES, Decoder, Journal, Record, What, encode_records
from trident_exchange.stream import Stream

RECORDS = st.builds(
    Record,
    st.sampled_from([each.value for each in What]),
    st.integers(0, 1_000),
    st.integers(0, 1 << 47),
    st.binary(max_size=200),
    message=st.none(),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(RECORDS, max_size=12), st.integers(1, 7))
def test_records_there_and_back_for_any_batches(records: list[Record], batch: int) -> None:
    rows = encode_records(records, 1)
    assert rows.dtype == EVENT
    assert rows["seq"].tolist() == list(range(1, len(rows) + 1))
    assert len(rows) == sum(max(1, -(-len(each.data) // ROW_BYTES)) for each in records)
    decoder = Decoder()
    back = [record for at in range(0, len(rows), batch) for record in decoder.feed(rows[at : at + batch])]
    decoder.finish()
    assert back == records
    assert decoder.torn_rows == 0


def test_a_torn_record_is_left_out_and_what_is_no_journal_is_refused() -> None:
    rows = encode_records([Record("m", 1, 5, b"x" * 90), Record("m", 1, 6, b"y" * 90)], 1)
    decoder = Decoder()
    assert list(decoder.feed(rows[:-1])) == [Record("m", 1, 5, b"x" * 90)]
    assert list(decoder.feed(rows[:3])) == [
        Record("m", 1, 5, b"x" * 90)
    ]  # the next process goes on behind it
    decoder.finish()
    assert decoder.torn_rows == 2
    with pytest.raises(StoreError, match="row 3 of the journal does not continue"):
        list(Decoder().feed(rows[[0, 2]]))
    with pytest.raises(StoreError, match="row 2"):
        list(Decoder().feed(rows[1:]))


@pytest.mark.parametrize("engine", ["reference", "lsm"])
def test_a_journal_goes_on_where_it_ended(tmp_path: Path, engine: str) -> None:
    first = [Record("c", 0, 1, b"{}" * 100), Record("m", 1, 2, b"one")]
    second = [Record("m", 2, 3, b"")]
    journal = Journal(tmp_path / "journal", Session(), store=engine)
    assert list(journal.read()) == []
    journal.append(first)
    journal.close()
    journal = Journal(tmp_path / "journal", Session())
    assert list(journal.read()) == first
    journal.append(second)
    assert list(journal.read()) == first + second
    assert journal.torn_rows == 0
    journal.close()


def test_a_record_that_a_crash_tore_is_told_and_passed_over(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal", Session(), store="reference")
    journal.append([Record("m", 1, 1, b"whole")])
    torn = encode_records([Record("m", 1, 2, b"z" * 100)], journal.rows + 1)[:1]
    journal.store.append(np.ascontiguousarray(torn))
    journal.close()
    journal = Journal(tmp_path / "journal", Session())
    assert list(journal.read()) == [Record("m", 1, 1, b"whole")]
    assert journal.torn_rows == 1
    journal.append([Record("m", 1, 3, b"next")])
    assert [record.data for record in journal.read()] == [b"whole", b"next"]
    journal.close()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=200), st.integers(1, 5_000), st.integers(0, 1 << 30))
def test_a_stream_gives_any_part_of_it_again(messages: list[bytes], bytes_max: int, seed: int) -> None:
    stream = Stream()
    cut = seed % (len(messages) + 1)
    stream.append(messages[:cut])
    stream.append(messages[cut:])
    assert stream.next == len(messages) + 1
    assert list(stream.messages()) == messages
    for first in range(1, len(messages) + 1, 1 + seed % 17):
        count, data = stream.read(first, bytes_max)
        part = messages[first - 1 : first - 1 + count]
        assert count >= 1
        assert data == b"".join(len(each).to_bytes(2, "big") + each for each in part)
        assert count == 1 or len(data) <= bytes_max
    assert stream.read(len(messages) + 1, 100) == stream.read(0, 100) == (0, b"")
    stream.close()


def test_a_long_stream_stands_in_its_file(tmp_path: Path) -> None:
    stream = Stream(tmp_path)
    messages = [b"%d" % i * (i % 9) for i in range(60_000)]
    for at in range(0, len(messages), 777):
        stream.append(messages[at : at + 777])
    assert list(stream.messages(41_234)) == messages[41_233:]
    assert list(tmp_path.iterdir()) == []  # nothing is left behind, whatever happens to the process
    stream.close()
