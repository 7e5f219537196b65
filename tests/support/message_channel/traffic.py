"""Any traffic of a few participants, and the lossy network that it is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from sds_core.message_channel import MessageChannel, Profile, Step
from tests.support.message_channel.lossy_network import (
    DELAYS_MS,
    LOSSES,
    LossyNetwork,
    names_of,
    participant,
    sendings,
)


@dataclass(frozen=True)
class Traffic:
    """Who sends when, and what becomes of the first transmissions."""

    participants: int
    sent: Sequence[tuple[int, int]]
    losses: Sequence[bool]
    delays_ms: Sequence[int]

    @property
    def names(self) -> list[str]:
        """Of the participants."""
        return names_of(self.participants)


@st.composite
def traffic(draw: st.DrawFn, max_participants: int = 5) -> Traffic:
    """Traffic of two to five participants."""
    participants = draw(st.integers(2, max_participants))
    return Traffic(
        participants, draw(sendings(participants)), draw(LOSSES), draw(DELAYS_MS)
    )


EachStep = Callable[[str, int, Step], None]


def network_of(
    one: Traffic, profile: Profile, each_step: EachStep = lambda *_: None
) -> LossyNetwork:
    """The network that a traffic is for, before anything is sent."""
    return LossyNetwork(
        one.names,
        lambda name, random: participant(profile, name, random),
        one.losses,
        one.delays_ms,
        each_step,
    )


def channels(network: LossyNetwork) -> dict[str, MessageChannel]:
    """The participants, which all are plain ones."""
    found = {}
    for name, one in network.participants.items():
        assert isinstance(one, MessageChannel)
        found[name] = one
    return found
