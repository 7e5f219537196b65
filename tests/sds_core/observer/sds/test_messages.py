"""Packed form of messages in the state."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.observer.columns import integers
from sds_core.observer.sds.messages import Message, MessageTable
from sds_core.observer.sds.participants import UNKNOWN
from sds_core.observer.table import PackedTable
from sds_core.wire import Dialect
from tests.support.properties import CAREFUL

ODD_IDS = (
    "", "a", "0", "00", "abc", "ABCD", "aBcd", "ab cd", " abcd", "0x00", "é", "ééé",
    "\N{FULLWIDTH DIGIT ONE}2", "\x00", "f" * 64, "F" * 64, "f" * 63, "a\n",
)  # fmt: skip
"""Ids that are hex, nearly hex, or nothing like it."""

IDS = st.one_of(
    st.sampled_from(ODD_IDS),
    st.text(st.characters(codec="utf-8")),
    st.binary(max_size=32).map(bytes.hex),
    st.binary(max_size=32).map(lambda raw: raw.hex().upper()),
)


@st.composite
def messages(draw: st.DrawFn) -> dict[int, Message]:
    """Messages by key, in the order of their first copies."""
    keys = draw(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=8))
    order = draw(st.integers(0, 2**40))
    drawn: dict[int, Message] = {}
    for key in keys:
        t0_ms = draw(st.integers(0, 2**45))
        witnesses = draw(st.lists(st.integers(0, 9), max_size=2))
        drawn[key] = Message(
            key=key,
            order=order,
            t0_ms=t0_ms,
            seen_ms=t0_ms + draw(st.integers(0, 2**40)),
            latest_ms=draw(st.integers(0, 2**45)),
            sender=draw(st.integers(UNKNOWN, 20_000)),
            lamport=draw(st.integers(0, 2**64 - 1)),
            dialect=draw(st.sampled_from(Dialect)),
            witnesses_needed=draw(st.integers(1, 2)),
            witnesses=witnesses,
            witness_rate=draw(st.floats(0, 1)) if witnesses else 1.0,
            message_id=draw(IDS),
            waku_hash=draw(st.sampled_from((b"", bytes(32), bytes(range(32))))),
            **{flag: draw(st.booleans()) for flag in FLAGS},
        )
        order += draw(st.integers(1, 3))
    return drawn


FLAGS = (
    "definite",
    "probable",
    "overdue",
    "in_time",
    "opportunity",
    "was_named_before",
)


def table_of(messages: dict[int, Message]) -> MessageTable:
    """A table to which the messages were added."""
    table = MessageTable(PackedTable())
    for message in messages.values():
        table.add(message)
    return table


def through_the_state(table: MessageTable) -> dict[int, Message]:
    """Messages after a round trip through a blob, in order."""
    data = msgspec.msgpack.encode(table.packed())
    again = MessageTable(msgspec.msgpack.decode(data, type=PackedTable))
    return {key: again[key] for key in integers(again.keys)}


@CAREFUL
@given(messages())
def test_messages_round_trip(drawn: dict[int, Message]) -> None:
    """All fields survive, in order."""
    assert list(through_the_state(table_of(drawn)).items()) == list(drawn.items())


@CAREFUL
@given(messages(), st.sets(st.integers(0, 7)))
def test_ids_that_nobody_needs_are_left_out(
    drawn: dict[int, Message], places: set[int]
) -> None:
    """Their hashes too, if they are acknowledged; all else stays."""
    kept = {m.order for place, m in enumerate(drawn.values()) if place in places}
    table = table_of(drawn)
    table.keep_ids_of(kept, since_ms=0)
    again = through_the_state(table)
    for key, message in drawn.items():
        if message.order not in kept and message.definite:
            message.message_id, message.waku_hash = "", b""
            message.witnesses, message.witness_rate = [], 1.0
        assert again[key] == message


@CAREFUL
@given(messages(), st.integers(0, 2**46))
def test_ids_of_old_messages_are_left_out(
    drawn: dict[int, Message], since_ms: int
) -> None:
    """Even of those that nobody has acknowledged."""
    table = table_of(drawn)
    table.keep_ids_of({m.order for m in drawn.values()}, since_ms)
    for key, message in through_the_state(table).items():
        recent = drawn[key].seen_ms >= since_ms
        assert message.message_id == (drawn[key].message_id if recent else "")


@CAREFUL
@given(messages(), st.integers(0, 8), st.integers(-30, 30))
def test_messages_are_found_by_order(
    drawn: dict[int, Message], in_columns: int, offset: int
) -> None:
    """Whether they lie in columns or were added since."""
    every = list(drawn.values())
    table = MessageTable(table_of({m.key: m for m in every[:in_columns]}).packed())
    for message in every[in_columns:]:
        table.add(message)
    by_order = {message.order: message for message in every}
    first = min(by_order, default=0)
    for order in range(first - 2, first + 30):
        assert table.by_order(order) == by_order.get(order)
    begin = max(0, first + offset)
    for end in (begin, begin + 1, begin + 30):
        assert table.sent_since(begin, end) == [
            (m.order, m.t0_ms, m.sender) for m in every if begin <= m.order < end
        ]


def one(message_id: str, **known: Any) -> dict[int, Message]:
    """A single message."""
    message = Message(
        3, 5, 1_000, 1_000, 1_000, 0, 7, Dialect.SPEC, 1, message_id=message_id, **known
    )
    return {message.key: message}


@pytest.mark.parametrize("message_id", ODD_IDS)
def test_odd_ids_survive(message_id: str) -> None:
    """An id is any text; hex only saves space."""
    assert through_the_state(table_of(one(message_id))) == one(message_id)


def test_id_in_hex_takes_half_its_length() -> None:
    """In lower case, as js-waku writes it; other ids are stored unchanged."""
    assert b"\xff" * 32 in table_of(one("f" * 64)).packed().rests
    assert b"F" * 64 in table_of(one("F" * 64)).packed().rests


@pytest.mark.parametrize("flag", FLAGS)
def test_each_flag_has_a_bit_of_its_own(flag: str) -> None:
    """No flag changes another."""
    known = one("m", **{flag: True})
    assert through_the_state(table_of(known)) == known


@pytest.mark.parametrize(
    ("overdue", "opportunity", "in_time", "expected"),
    [
        (True, True, False, True),
        (False, True, False, False),
        (True, False, False, False),
        (True, True, True, False),
    ],
)
def test_unacknowledged_is_overdue_with_an_opportunity(
    overdue: bool, opportunity: bool, in_time: bool, expected: bool
) -> None:
    """And not acknowledged in time; later acknowledgements do not change it."""
    for definite in (False, True):
        message = one(
            "m",
            overdue=overdue,
            opportunity=opportunity,
            in_time=in_time,
            definite=definite,
        )[3]
        assert message.is_unacknowledged is expected
