"""Participants that receive arbitrary input, and the check that they still work."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from sds_core.message_channel import MessageChannel, Profile
from sds_core.wire import BloomParameters
from tests.support.frames import START_MS, FrameFactory
from tests.support.participants import CHANNEL, SPEC, participant, receive
from tests.support.wire.raw import field

SMALL = replace(SPEC, bloom=BloomParameters(50, 0.01))
HEAD = field(1, "eve") + field(2, "m") + field(3, CHANNEL) + field(10, START_MS)


def busy(profile: Profile = SMALL) -> MessageChannel:
    """A participant with something to lose."""
    alice = participant(profile=profile)
    frames = FrameFactory(CHANNEL, profile.dialect)
    alice.send(b"hi", START_MS, message_id="ours")
    receive(
        alice,
        frames.content("known", "bob"),
        frames.content("waiting", "bob", history=[("missing", "carol")]),
    )
    return alice


def assert_usable(channel: MessageChannel) -> None:
    """All calls still work, far in the future too."""
    channel.send(b"hi", START_MS)
    for at in (0, 10**6, 10**9):
        channel.advance(START_MS + at)
        channel.sync(START_MS + at)
    MessageChannel.restore(
        channel.snapshot(), random=Random(1), profile=channel.profile
    )
