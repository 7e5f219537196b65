"""The states of an id that histories name but no tap has seen (docs/figures.md, 6).

`TRANSITIONS` gives, for a state and an event, the next state and the totals that
change. docs/make_gap_states.py draws the diagram in docs/figures.md from `TRANSITIONS`.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class GapState(enum.IntEnum):
    """State of an id that histories name but no tap has seen.

    Checkpoints store the numbers, so do not change them.
    """

    NOTED = 0
    """Histories named the id only in the channel's warm-up, in which no gap opens."""
    BEFORE_START = 1
    """The message may be from the warm-up or earlier, so the id is never a gap."""
    SETTLING = 2
    """The message has been missing for less than the settle time."""
    OPEN = 3
    """The message is missing, but its deadline has not passed."""
    LOST = 4
    """At the deadline, no evidence showed that the network had the missing message."""
    TAP_GAP = 5
    """The network had the message, but no tap mirrored it before the deadline."""


WAITING = frozenset({GapState.SETTLING, GapState.OPEN})
"""States whose deadline has not passed."""

AFTER_START = frozenset(
    {GapState.SETTLING, GapState.OPEN, GapState.LOST, GapState.TAP_GAP}
)
"""States of ids whose messages were sent after the channel's warm-up."""


class GapEvent(enum.IntEnum):
    """Event that can change the state of an id that no tap has seen."""

    NAMED_IN_WARM_UP = 0
    """A causal history names the id during the channel's warm-up."""
    NAMED_BEFORE_START = 1
    """A history names the id, but the message may be from the warm-up or earlier.

    The naming is after the warm-up.
    """
    NAMED_AFTER_START = 2
    """A history names the id and shows that the message is from after the warm-up."""
    SETTLE_TIME_PASSED = 3
    """The settle time of the gap passes before a first copy arrives."""
    DEADLINE_PASSED = 4
    """The deadline passes without evidence that the network had the message."""
    DEADLINE_PASSED_WITH_EVIDENCE = 5
    """The deadline passes with evidence that the network had the message."""
    ARRIVED = 6
    """The first copy arrives, and no participant had requested the message."""
    ARRIVED_AFTER_REQUEST = 7
    """The first copy arrives within the repair window of the latest request."""
    ARRIVED_AFTER_REPAIR_WINDOW = 8
    """The first copy arrives after the repair window of the latest request."""
    ARRIVED_AFTER_HORIZON = 9
    """The first copy arrives after the deadline, and after one retention window."""
    FORGOTTEN = 10
    """No history named the id for a retention window, or the entry limit evicts it."""


NAMINGS = (
    GapEvent.NAMED_IN_WARM_UP,
    GapEvent.NAMED_BEFORE_START,
    GapEvent.NAMED_AFTER_START,
)
DEADLINES = (
    GapEvent.SETTLE_TIME_PASSED,
    GapEvent.DEADLINE_PASSED,
    GapEvent.DEADLINE_PASSED_WITH_EVIDENCE,
)
ARRIVALS = (
    GapEvent.ARRIVED,
    GapEvent.ARRIVED_AFTER_REQUEST,
    GapEvent.ARRIVED_AFTER_REPAIR_WINDOW,
    GapEvent.ARRIVED_AFTER_HORIZON,
)


class Transition(NamedTuple):
    """Effect of an event on an id.

    Attributes:
        next: The next state; None if the id is no longer tracked.
        counts: Fields of `ChannelTotals` that change, and by how much.
    """

    next: GapState | None
    counts: Mapping[str, int] = MappingProxyType({})


class NoTransition(ValueError):
    """An event occurred, but `TRANSITIONS` lacks the pair of state and event."""

    def __init__(self, state: GapState, event: GapEvent) -> None:
        super().__init__(
            f"the event {event.name} cannot happen in the state {state.name}"
        )
        self.state = state
        self.event = event


def _stays(state: GapState, *events: GapEvent) -> dict[GapEvent, Transition]:
    return dict.fromkeys(events, Transition(state))


_GONE = Transition(None)
_DROPPED = dict.fromkeys((*ARRIVALS, GapEvent.FORGOTTEN), _GONE)

TRANSITIONS: Mapping[GapState, Mapping[GapEvent, Transition]] = {
    # An entry in the state NOTED has no deadline. However, if an earlier entry of the
    # same id was dropped, the deadline of the earlier entry can still pass.
    GapState.NOTED: {
        **_stays(GapState.NOTED, GapEvent.NAMED_IN_WARM_UP, *DEADLINES),
        GapEvent.NAMED_BEFORE_START: Transition(GapState.BEFORE_START),
        GapEvent.NAMED_AFTER_START: Transition(GapState.SETTLING),
        **_DROPPED,
    },
    GapState.BEFORE_START: {
        **_stays(GapState.BEFORE_START, *NAMINGS, *DEADLINES),
        **_DROPPED,
    },
    GapState.SETTLING: {
        **_stays(GapState.SETTLING, *NAMINGS, *DEADLINES),
        GapEvent.SETTLE_TIME_PASSED: Transition(
            GapState.OPEN, {"gaps_opened": 1, "gaps_open": 1}
        ),
        **_DROPPED,
    },
    # ARRIVED_AFTER_HORIZON cannot occur in the state OPEN, because the event requires
    # that the deadline has passed, and the state OPEN ends at the deadline.
    GapState.OPEN: {
        **_stays(GapState.OPEN, *NAMINGS, GapEvent.SETTLE_TIME_PASSED),
        GapEvent.DEADLINE_PASSED: Transition(
            GapState.LOST, {"gaps_open": -1, "gaps_lost": 1}
        ),
        GapEvent.DEADLINE_PASSED_WITH_EVIDENCE: Transition(
            GapState.TAP_GAP, {"gaps_open": -1, "gaps_tap_gap": 1}
        ),
        GapEvent.ARRIVED: Transition(None, {"gaps_open": -1, "gaps_late": 1}),
        GapEvent.ARRIVED_AFTER_REQUEST: Transition(
            None, {"gaps_open": -1, "gaps_repaired": 1}
        ),
        GapEvent.ARRIVED_AFTER_REPAIR_WINDOW: Transition(
            None, {"gaps_open": -1, "gaps_recovered_late": 1}
        ),
        # If an open gap is forgotten, it counts as a tap gap, because nothing shows
        # that the message was lost.
        GapEvent.FORGOTTEN: Transition(None, {"gaps_open": -1, "gaps_tap_gap": 1}),
    },
    GapState.LOST: {
        **_stays(GapState.LOST, *NAMINGS, *DEADLINES),
        **dict.fromkeys(ARRIVALS, Transition(None, {"gaps_retracted": 1})),
        GapEvent.ARRIVED_AFTER_HORIZON: _GONE,
        GapEvent.FORGOTTEN: _GONE,
    },
    GapState.TAP_GAP: {
        **_stays(GapState.TAP_GAP, *NAMINGS, *DEADLINES),
        **_DROPPED,
    },
}
"""For each state and event, the next state and the changes of the totals."""

_ROWS = tuple(
    tuple(TRANSITIONS[state].get(event) for event in GapEvent) for state in GapState
)
"""`TRANSITIONS` as tuples with numbers as indices. A look-up by enum member is slow."""


def transition(state: GapState, event: GapEvent) -> Transition:
    """Return the effect of an event on an id in this state.

    Raises:
        NoTransition: The event cannot happen in this state.
    """
    found = _ROWS[state][event]
    if found is None:
        raise NoTransition(state, event)
    return found
