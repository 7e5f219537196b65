"""Participants with messages that wait for others."""

from __future__ import annotations

from dataclasses import replace

from sds_core.message_channel import Delivered, Event, MessageChannel, Profile, Step
from tests.support.frames import FrameFactory
from tests.support.participants import CHANNEL, SPEC, of_type, participant, receive

FRAMES = FrameFactory(CHANNEL)
# Neither sync messages nor repairs: what falls due is the end of a wait.
QUIET = replace(SPEC, sync_interval_ms=10**9, sync_least_share=None, repair=False)
LOST_AFTER_MS = 600_000


def waiting(profile: Profile = QUIET) -> MessageChannel:
    """A participant with a message that waits for another."""
    bob = participant("bob", profile)
    receive(bob, FRAMES.content("m", "alice", 9, history=[("x", "carol")]))
    return bob


def delivered(events: list[Event] | Step) -> list[str]:
    """The ids of what is delivered, in order."""
    told = events.events if isinstance(events, Step) else events
    return [event.message_id for event in of_type(told, Delivered)]
