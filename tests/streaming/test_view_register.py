"""The file with views, requests and what forgotten views had counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from sds_core.observer.protocols import PROTOCOLS, kinds_of
from sds_core.observer.sds.kind import CHANNELS
from sds_core.observer.sds.totals import ChannelTotals
from streaming.ledger.view_register import ForgottenView, ViewRegister
from tests.support.streaming.ledger import ledger_in

KINDS = kinds_of(PROTOCOLS)


@pytest.fixture
def register(tmp_path: Path) -> ViewRegister:
    """A new file."""
    return ViewRegister(ledger_in(tmp_path))


def ended(messages: int, in_other: bool = False) -> ForgottenView:
    """A forgotten channel."""
    return ForgottenView(CHANNELS, ChannelTotals(messages=messages), in_other)


def messages(register: ViewRegister) -> tuple[int, int, int | None]:
    """Forgotten channels, their messages, and those of the ones in `other`."""
    one = register.remainders(KINDS)["sds"]
    other = None if one.other is None else one.other.messages
    return one.views, one.totals.messages, other


def test_forgotten_views_add_to_the_sum(register: ViewRegister) -> None:
    """Apart from those in `other`."""
    assert register.remainders(KINDS) == {}
    register.add_forgotten([ended(5)])
    assert messages(register) == (1, 5, None)
    register.add_forgotten([ended(10), ended(20, in_other=True)])
    assert messages(register) == (3, 35, 20)
    register.add_forgotten([ended(100, in_other=True)])
    assert messages(register) == (4, 135, 120)


def test_keys_follow_the_batches(register: ViewRegister) -> None:
    """A start sets them anew from the state."""
    register.update_keys(["sds:b", "sds:a"], [])
    register.update_keys(["sds:b", "sds:c"], ["sds:a"])
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
    register.begin(taken=2)
    assert register.requests(0, 3) == [("sds:c", b"3")]
    register.request([("sds:d", b"4")])
    assert register.newest_request() == 4
    new = ViewRegister(ledger_in(tmp_path / "new"))
    new.begin(taken=9)
    new.request([("sds:a", b"1")])
    assert new.requests(9, new.newest_request()) == [("sds:a", b"1")]
