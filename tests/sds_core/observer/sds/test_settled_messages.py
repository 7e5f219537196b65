"""Messages that are named again, and to which nothing else can happen."""

from __future__ import annotations

import pytest

from sds_core.observer.columns import integers
from sds_core.observer.sds.messages import Message, MessageTable
from sds_core.observer.table import PackedTable
from sds_core.wire import Dialect


def table(*messages: Message) -> MessageTable:
    """A table as it is read from the state."""
    new = MessageTable(PackedTable())
    for message in messages:
        new.add(message)
    return MessageTable(new.packed())


def message(key: int, definite: bool = True, hint: bytes = b"") -> Message:
    """A message, last named at 7 ms."""
    return Message(
        key, key, 1, 1, 7, 0, 1, Dialect.SPEC, 1, definite=definite, hint=hint
    )


@pytest.mark.parametrize(
    ("definite", "hint", "named_with", "is_settled"),
    [
        (True, b"", b"", True),
        (True, b"hint", b"", True),
        (True, b"hint", b"other", True),
        (True, b"", b"new", False),
        (False, b"hint", b"", False),
    ],
)
def test_only_a_message_to_which_naming_changes_nothing_is_settled(
    definite: bool, hint: bytes, named_with: bytes, is_settled: bool
) -> None:
    """All others are looked up."""
    messages = table(message(1, definite, hint))
    assert messages.name_settled(1, named_with, 9) is is_settled
    assert messages[1].latest_ms == (9 if is_settled else 7)


def test_unknown_message_and_one_that_was_looked_up_are_not_settled() -> None:
    """The caller changes the latter itself."""
    messages = table(message(1))
    assert not messages.name_settled(2, b"", 9)
    assert messages[1].latest_ms == 7
    assert not messages.name_settled(1, b"", 9)


def test_hint_that_comes_with_a_later_naming_of_the_batch_is_not_lost() -> None:
    """Whether the message was named before, without a hint, does not matter."""
    messages = table(message(1))
    assert messages.name_settled(1, b"", 8)
    assert not messages.name_settled(1, b"hint", 9)


def test_time_of_a_settled_message_is_in_the_columns_and_in_the_state() -> None:
    """The newest one, whether or not the message is looked up later."""
    messages = table(message(1), message(2), message(3))
    for key, clock_ms in ((1, 8), (2, 8), (1, 9)):
        assert messages.name_settled(key, b"", clock_ms)
    assert messages[2].latest_ms == 8
    assert messages.silent_since(9) == [2, 3]
    again = MessageTable(messages.packed())
    assert [again[key].latest_ms for key in integers(again.keys)] == [9, 8, 7]


def test_settled_message_may_be_removed() -> None:
    """Its time goes with it."""
    messages = table(message(1), message(2))
    assert messages.name_settled(1, b"", 9)
    messages.remove(1)
    assert messages.silent_since(8) == [2]
    assert 1 not in MessageTable(messages.packed())
