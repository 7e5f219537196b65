"""The file with views, requests and what forgotten views had counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from streaming.view_register import ForgottenView, ViewRegister

KINDS = kinds_of(PROTOCOLS)


@pytest.fixture
def register(tmp_path: Path) -> ViewRegister:
    """A new file."""
    return ViewRegister(tmp_path / "views.sqlite")


def ended(messages: int, in_other: bool = False) -> ForgottenView:
    """A forgotten channel."""
    return ForgottenView(CHANNELS, ChannelTotals(messages=messages), in_other)


def messages(register: ViewRegister) -> tuple[int, int, int | None]:
    """Forgotten channels, their messages, and those of the ones in `other`."""
    one = register.remainders(KINDS)["sds"]
    other = None if one.other is None else one.other.messages
    return one.views, one.totals.messages, other


def test_repeated_batch_adds_once(register: ViewRegister, tmp_path: Path) -> None:
    """Also after a restart, and if it forgets something else the second time."""
    assert register.remainders(KINDS) == {}
    register.record_batch(3, [], ["sds:a"], [ended(5)])
    assert messages(register) == (1, 5, None)
    register.record_batch(7, [], [], [ended(10), ended(20, in_other=True)])
    register.record_batch(7, [], [], [ended(10), ended(20, in_other=True)])
    assert messages(register) == (3, 35, 20)
    again = ViewRegister(tmp_path / "views.sqlite", expected=True)
    again.record_batch(7, [], [], [ended(1)])
    assert messages(again) == (2, 6, None)
    again.record_batch(8, [], [], [ended(100, in_other=True)])
    assert messages(again) == (3, 106, 100)


def test_batch_that_was_not_committed_is_undone_at_a_start(
    register: ViewRegister,
) -> None:
    """Its channels are in the state again, so they must not be in the sum too."""
    register.record_batch(0, [], [], [ended(5)])
    register.record_batch(1, [], [], [ended(7)])
    register.begin(committed=1, taken=0)
    assert messages(register) == (2, 12, None)
    register.begin(committed=0, taken=0)
    assert messages(register) == (1, 5, None)
    register.begin(committed=None, taken=0)
    assert register.remainders(KINDS) == {}


def test_keys_follow_the_batches(register: ViewRegister) -> None:
    """A start sets them anew from the state."""
    register.record_batch(0, ["sds:b", "sds:a"], [], [])
    register.record_batch(1, ["sds:b", "sds:c"], ["sds:a"], [])
    assert register.keys() == ["sds:b", "sds:c"]
    register.set_keys(["sds:d"])
    assert register.keys() == ["sds:d"]


def test_taken_requests_are_removed_and_numbers_only_grow(
    register: ViewRegister, tmp_path: Path
) -> None:
    """Also in a new file beside a position that has taken some already."""
    register.request([("sds:a", b"1"), ("sds:b", b"2")])
    register.request([("sds:c", b"3")])
    assert register.newest_request() == 3
    assert register.requests(1, 3) == [("sds:b", b"2"), ("sds:c", b"3")]
    register.begin(committed=4, taken=2)
    assert register.requests(0, 3) == [("sds:c", b"3")]
    register.request([("sds:d", b"4")])
    assert register.newest_request() == 4
    new = ViewRegister(tmp_path / "new.sqlite")
    new.begin(committed=4, taken=9)
    new.request([("sds:a", b"1")])
    assert new.requests(9, new.newest_request()) == [("sds:a", b"1")]
