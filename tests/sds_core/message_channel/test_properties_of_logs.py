"""Properties of logs for any traffic, loss and delay: what they hold and its order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sds_core.message_channel import (
    AfterRequest,
    Cause,
    IrretrievablyLost,
    Profile,
    Step,
)
from sds_core.wire import decode
from tests.support.frames import MINUTE, SECOND, START_MS
from tests.support.message_channel.lossy_network import (
    HOUR,
    JS_SDS,
    NIM_SDS,
    SPEC,
    LossyNetwork,
    history_of,
    participant,
    play,
    sendings,
)
from tests.support.message_channel.traffic import Traffic, channels, network_of, traffic
from tests.support.properties import CAREFUL

pytestmark = pytest.mark.slow


# Logs become equal.


def assert_causally_ordered(network: LossyNetwork, log: Sequence[str]) -> None:
    """Nothing in a log stands before what it depends on."""
    places = {message_id: place for place, message_id in enumerate(log)}
    for message_id, place in places.items():
        for dependency in history_of(network.messages[message_id]):
            assert places.get(dependency, -1) < place


def run_until_equal(network: LossyNetwork, limit_ms: int) -> None:
    """Let time pass until every log has every message, or so long after the last loss.

    Nothing is sent meanwhile but what the participants send of themselves.
    """
    everything = set(network.messages)
    found = channels(network).values()
    checked_ms = network.now_ms
    for now_ms in network.moments(24 * HOUR):
        if now_ms - network.last_loss_ms > limit_ms:
            return
        if now_ms - checked_ms > 5 * SECOND:
            checked_ms = now_ms
            if all(set(channel.log) == everything for channel in found):
                return
    message = "losses went on for a day"
    raise AssertionError(message)


def for_ever(profile: Profile, causal_history_size: int) -> Profile:
    """A profile whose participants keep what may be asked for and never give up.

    Args:
        profile: the profile.
        causal_history_size: how many messages each frame names.
    """
    return replace(
        profile,
        causal_history_size=causal_history_size,
        repair_retention_ms=None,
        lost_after_ms=None,
    )


@CAREFUL
@given(traffic(), st.sampled_from([SPEC, NIM_SDS]))
def test_logs_become_equal_where_every_history_names_all_messages(
    one: Traffic, profile: Profile
) -> None:
    """Any loss leaves a path if messages are kept and named until they have arrived.

    A message has a path to a participant if a holder keeps it and a frame that comes
    through names it. Histories of 10 entries name all of at most 10 messages, and sync
    messages never cease, so each comes through after the last loss. The specification
    asks again, or at the next history, as nim-sds does. js-waku asks once: see below.
    """
    network = network_of(one, for_ever(profile, 10))
    play(network, one.sent)
    run_until_equal(network, 2 * HOUR)
    logs = {name: channel.log for name, channel in channels(network).items()}
    for log in logs.values():
        assert sorted(log) == sorted(network.messages)
        assert_causally_ordered(network, log)
    if profile is SPEC:
        assert len(set(logs.values())) == 1


@CAREFUL
@given(traffic())
def test_log_has_everything_that_its_participant_was_told_of(one: Traffic) -> None:
    """With histories of two, as SDS recommends: whatever was named or brought to it.

    A path is narrower here: an acknowledged message is sent no more, and one below the
    last two of every log is named no more, so that who missed it and every message that
    named it never hears of it. All else arrives in the end; and logs that have the same
    messages have them in the same order.
    """
    # A request that was dropped for that of another comes again only with a history.
    profile = replace(SPEC, after_request=AfterRequest.ASK_AGAIN)
    network = network_of(one, for_ever(profile, 2))
    play(network, one.sent)
    run_until_equal(network, 2 * HOUR)
    orders = []
    for name, channel in channels(network).items():
        settled_ms = network.now_ms - HOUR
        told = {
            message_id
            for message_id, at_ms in network.told_ms[name].items()
            if at_ms < settled_ms
        }
        assert told <= set(channel.log)
        assert_causally_ordered(network, channel.log)
        orders.append(channel.log)
    for log, other in pairwise(orders):
        common = set(log) & set(other)
        assert [one for one in log if one in common] == [
            one for one in other if one in common
        ]


@CAREFUL
@given(traffic())
def test_logs_of_js_sds_become_equal_where_no_request_meets_a_loss(
    one: Traffic,
) -> None:
    """js-waku asks once: that request and its answer must come through.

    A message has a path to a participant if nobody asked for it before the last loss;
    each history names all messages, so that all are told of all. What depends on a
    message without a path may wait for it for ever, and is left out too.
    """
    asked_ms: dict[str, int] = {}

    def keep(_: str, now_ms: int, step: Step) -> None:
        for broadcast in step.broadcasts:
            for entry in decode(broadcast.value).repair_request:
                asked_ms.setdefault(entry.message_id, now_ms)

    network = network_of(one, for_ever(JS_SDS, 200), keep)
    play(network, one.sent)
    run_until_equal(network, 2 * HOUR)
    without_path = {
        asked for asked, at_ms in asked_ms.items() if at_ms <= network.last_loss_ms
    }
    for message_id in sorted(network.messages, key=network.place_of):
        if without_path & set(history_of(network.messages[message_id])):
            without_path.add(message_id)
    logs = {name: channel.log for name, channel in channels(network).items()}
    for log in logs.values():
        assert set(network.messages) - without_path <= set(log)
        assert list(log) == sorted(log, key=network.place_of)
    if not without_path:
        assert len(set(logs.values())) == 1


@CAREFUL
@given(traffic(), st.sampled_from([MINUTE, 10 * MINUTE]))
def test_every_named_message_is_delivered_or_reported_lost(
    one: Traffic, lost_after_ms: int
) -> None:
    """With the profile's limits of time nothing hangs: in the log, or lost and said so.

    Here repairs may come too late: a path would be a request, within the time that
    holders keep a message, for each step of a chain of missing ones.
    """
    lost: dict[str, set[str]] = {name: set() for name in one.names}

    def keep(name: str, _: int, step: Step) -> None:
        lost[name] |= {
            event.message_id
            for event in step.events
            if isinstance(event, IrretrievablyLost)
        }

    network = network_of(one, replace(SPEC, lost_after_ms=lost_after_ms), keep)
    play(network, one.sent)
    run_until_equal(network, HOUR)
    for name, channel in channels(network).items():
        settled_ms = network.now_ms - 2 * lost_after_ms
        told = {
            message_id
            for message_id, at_ms in network.told_ms[name].items()
            if at_ms < settled_ms
        }
        assert told <= set(channel.log) | lost[name]
        assert list(channel.log) == sorted(channel.log, key=network.place_of)


# Order of arrival.


def frames_of(sent: Sequence[tuple[int, int]], profile: Profile) -> list[bytes]:
    """The content frames of a conversation of three in which most histories differ."""
    values: list[bytes] = []

    def keep(_: str, __: int, step: Step) -> None:
        for broadcast in step.broadcasts:
            if broadcast.cause is Cause.CONTENT:
                values.append(broadcast.value)

    conversation = Traffic(3, sent, [], [SECOND, 1] * 10)
    play(network_of(conversation, profile, keep), sent)
    return values


@CAREFUL
@given(st.data(), sendings(3, max_size=7), st.sampled_from([SPEC, JS_SDS]))
def test_log_does_not_depend_on_the_order_of_arrival(
    data: st.DataObject, sent: list[tuple[int, int]], profile: Profile
) -> None:
    """It is ordered by (timestamp, message id) for every permutation."""
    values = frames_of(sent, profile)
    receiver = participant(profile, "zoe", Random(0))
    for value in data.draw(st.permutations(values)):
        receiver.receive(value, START_MS)
    frames = [decode(value) for value in values]
    by_place = sorted((frame.lamport, frame.message_id) for frame in frames)
    assert receiver.log == tuple(message_id for _, message_id in by_place)
