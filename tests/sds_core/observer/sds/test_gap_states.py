"""The table of gap states: complete, and drawn in docs/figures.md."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docs import make_gap_states
from sds_core.observer.sds.gap_states import (
    ARRIVALS,
    DEADLINES,
    NAMINGS,
    TRANSITIONS,
    WAITING,
    GapEvent,
    GapState,
    NoTransition,
    transition,
)
from sds_core.observer.sds.totals import ChannelTotals

IMPOSSIBLE = {(GapState.OPEN, GapEvent.ARRIVED_AFTER_HORIZON)}
"""Pairs that the table leaves out on purpose."""

OUTCOMES = (
    "gaps_late",
    "gaps_repaired",
    "gaps_recovered_late",
    "gaps_lost",
    "gaps_tap_gap",
)


@pytest.mark.parametrize(("state", "event"), list(product(GapState, GapEvent)))
def test_every_event_in_every_state_is_decided(
    state: GapState, event: GapEvent
) -> None:
    """It is in the table, or it raises because it cannot happen."""
    if (state, event) in IMPOSSIBLE:
        with pytest.raises(NoTransition, match=f"{event.name}.*{state.name}") as caught:
            transition(state, event)
        assert (caught.value.state, caught.value.event) == (state, event)
    else:
        assert transition(state, event) == TRANSITIONS[state][event]


def test_stored_values_of_states_do_not_change() -> None:
    """Checkpoints have them as numbers."""
    assert {state.name: state.value for state in GapState} == {
        "NOTED": 0,
        "BEFORE_START": 1,
        "SETTLING": 2,
        "OPEN": 3,
        "LOST": 4,
        "TAP_GAP": 5,
    }


def test_counted_fields_are_totals() -> None:
    """Each name in the table is a counter of `ChannelTotals`."""
    totals = ChannelTotals()
    for row in TRANSITIONS.values():
        for moved in row.values():
            for name in moved.counts:
                assert type(getattr(totals, name)) is int


@pytest.mark.parametrize(("state", "event"), list(product(GapState, ARRIVALS)))
def test_arrival_ends_every_state(state: GapState, event: GapEvent) -> None:
    """An id that was seen is not followed as a gap."""
    if (state, event) not in IMPOSSIBLE:
        assert transition(state, event).next is None


@pytest.mark.parametrize("state", GapState)
def test_forgotten_id_is_not_followed(state: GapState) -> None:
    """Whatever its state was."""
    assert transition(state, GapEvent.FORGOTTEN).next is None


@pytest.mark.parametrize("event", NAMINGS)
@pytest.mark.parametrize("state", sorted(set(GapState) - {GapState.NOTED}))
def test_naming_moves_only_an_id_that_is_noted(
    state: GapState, event: GapEvent
) -> None:
    """The first naming after the warm-up decides."""
    assert transition(state, event) == (state, {})


@pytest.mark.parametrize("event", DEADLINES)
@pytest.mark.parametrize("state", sorted(set(GapState) - WAITING))
def test_deadline_moves_only_a_waiting_gap(state: GapState, event: GapEvent) -> None:
    """In other states a deadline is void."""
    assert transition(state, event) == (state, {})


@given(st.lists(st.sampled_from(GapEvent)))
def test_opened_gaps_are_open_or_have_one_outcome(events: list[GapEvent]) -> None:
    """Opened = late + repaired + recovered_late + lost + tap_gap + open."""
    totals, state = ChannelTotals(), GapState.NOTED
    for event in events:
        if (state, event) in IMPOSSIBLE:
            continue
        next_, counts = transition(state, event)
        for name, change in counts.items():
            setattr(totals, name, getattr(totals, name) + change)
        # A next id follows one that ended.
        state = GapState.NOTED if next_ is None else next_
        ended = sum(getattr(totals, name) for name in OUTCOMES)
        assert totals.gaps_opened == ended + totals.gaps_open
        assert totals.gaps_open == (state is GapState.OPEN)
        assert totals.gaps_retracted <= totals.gaps_lost


def test_diagram_in_the_page_is_current() -> None:
    """After a change of the table run ``python -m docs.make_gap_states``."""
    assert make_gap_states.PART.current() == make_gap_states.block()


def test_diagram_shows_each_change_of_state() -> None:
    """Each pair of states with a transition has an arrow."""
    drawn = make_gap_states.diagram()
    for state, row in TRANSITIONS.items():
        for moved in row.values():
            if moved.next is None:
                assert f"{state.name} --> [*]" in drawn
            elif moved.next is not state:
                assert f"{state.name} --> {moved.next.name}" in drawn
