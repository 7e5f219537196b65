"""The accuracy figures detect a monitor that is wrong."""

from __future__ import annotations

import copy
from dataclasses import replace

import msgspec
import pytest

from sds_core.message_channel.events import Cause
from sds_core.observer.incidents import Incident, IncidentKind
from tests.support.accuracy.figures import Figures, figures_of, total
from tests.support.accuracy.play import Play, play
from tests.support.accuracy.suite import scenario_of


@pytest.fixture(scope="module")
def right() -> Play:
    """A monitor that was right."""
    return play(scenario_of("unrepaired"), 1)


@pytest.fixture
def played(right: Play) -> Play:
    """The same, to be made wrong."""
    monitor = copy.copy(right.monitor)
    monitor.incidents = dict(monitor.incidents)
    monitor.acknowledgements = copy.deepcopy(monitor.acknowledgements)
    return replace(
        right,
        truth=copy.deepcopy(right.truth),
        verdicts=list(right.verdicts),
        monitor=monitor,
        undelivered=dict(right.undelivered),
    )


def keys_of(played: Play, outcome: str) -> list[tuple[str, str]]:
    """Missing dependencies with an outcome, by channel and message id."""
    return [
        (channel, message_id)
        for channel, stories in played.truth["messages"].items()
        for message_id, story in stories.items()
        if story["gap"] is not None and story["gap"]["outcome"] == outcome
    ]


def test_missed_and_wrong_losses_are_counted(
    played: Play,
) -> None:
    """A loss that is not reported is missed; a reported tap gap is wrong."""
    right = figures_of(played).losses
    lost, missed_by_tap = keys_of(played, "lost")[0], keys_of(played, "tap_gap")[0]
    incidents = played.monitor.incidents
    incident = incidents.pop((lost[0], IncidentKind.LOST, lost[1]))
    incidents[missed_by_tap[0], IncidentKind.LOST, missed_by_tap[1]] = incident
    incidents["nowhere", IncidentKind.LOST, "nothing"] = incident
    wrong = figures_of(played).losses
    assert (right.missed, right.wrong) == (0, 0)
    assert (wrong.missed, wrong.wrong) == (1, 2)
    assert wrong.found == right.found - 1
    assert wrong.tap_gaps == right.tap_gaps - 1


def test_loss_that_others_have_received_since_is_stale(
    played: Play,
) -> None:
    """It was lost at its deadline, but is not now."""
    channel, message_id = keys_of(played, "lost")[0]
    story = played.truth["messages"][channel][message_id]
    story["received"]["late"] = story["gap"]["deadline_ms"] + 1
    found = figures_of(played).losses
    assert (found.stale, found.missed, found.wrong) == (1, 0, 0)


def test_missed_and_wrong_pairs_are_counted(
    played: Play,
) -> None:
    """One pair too many and one too few."""
    right = figures_of(played).undelivered
    unsaid = next(
        (channel, message_id, who)
        for channel, message_id, who in sorted(played.undelivered)
        if played.truth["messages"][channel][message_id]["deliveries"][who]["lacking"]
    )
    said = played.undelivered.pop(unsaid)
    played.undelivered["nowhere", "nothing", "nobody"] = said
    wrong = figures_of(played).undelivered
    assert wrong.wrong == right.wrong + 1
    assert wrong.found == right.found - 1
    assert sum(wrong[2:]) == sum(right[2:]) + 1


def test_wrong_latency_and_extra_acknowledgement_are_counted(
    played: Play,
) -> None:
    """Each differing latency counts, not their sum."""
    told = next(iter(played.monitor.acknowledgements.values()))
    for place, more_ms in ((0, 1), (1, -1)):
        changed_ms = told[place].latency_ms + more_ms
        told[place] = msgspec.structs.replace(told[place], latency_ms=changed_ms)
    told.pop()
    found = figures_of(played).acknowledgements
    assert (found.error_ms, found.differing) == (2, 1)


def test_an_acknowledgement_before_anybody_has_the_message_is_wrong(
    played: Play,
) -> None:
    """A participant that names a message has it."""
    channel, told = next(iter(played.monitor.acknowledgements.items()))
    played.truth["messages"][channel][told[0].message_id]["received"].clear()
    assert figures_of(played).acknowledgements.wrong == 1


@pytest.mark.parametrize(("had", "figure"), [(True, "unshown"), (False, "silent")])
def test_unacknowledged_depends_on_whether_anybody_had_it(
    played: Play, had: bool, figure: str
) -> None:
    """What counts is whether another participant had it by the deadline."""
    before = getattr(figures_of(played).acknowledgements, figure)
    channel, message_id = next(
        (channel, message_id)
        for channel, stories in played.truth["messages"].items()
        for message_id, story in stories.items()
        if bool(story["received"]) is had
    )
    key = channel, IncidentKind.UNACKNOWLEDGED, message_id
    played.monitor.incidents[key] = Incident(key[1], message_id, "", 0, 1 << 60)
    assert getattr(figures_of(played).acknowledgements, figure) == before + 1


def test_verdict_without_a_cause_is_wrong(played: Play) -> None:
    """Failing without a loss, and ok after one."""
    right = figures_of(played).wrong_verdicts_ms
    lost = next(one for one in played.verdicts if one.reason == "lost")
    length_ms = lost.to_ms - lost.from_ms
    played.verdicts[:] = [lost._replace(verdict="ok", reason="ok")]
    assert figures_of(played).wrong_verdicts_ms == {("ok", "ok"): length_ms}
    nowhere = lost._replace(channel="nowhere")
    played.verdicts[:] = [nowhere, lost]
    wrong = figures_of(played).wrong_verdicts_ms
    assert wrong["failing", "lost"] == length_ms
    assert right["failing", "lost"] == 0


def test_blindness_needs_a_gap_of_every_tap_that_showed_the_channel(
    played: Play,
) -> None:
    """Within the window before; here all of the verdict is of one tap."""
    span = max(played.verdicts, key=lambda one: one.to_ms - one.from_ms)
    blind = span._replace(verdict="blind", reason="tap_hole")
    played.verdicts[:] = [blind]
    length_ms = span.to_ms - span.from_ms
    assert figures_of(played).wrong_blind_ms == length_ms
    (tap,) = played.truth["taps"].values()
    gap = {"from_ms": span.from_ms + 1_000, "until_ms": span.to_ms, "cause": "down"}
    tap["gaps"].append(gap)
    assert figures_of(played).wrong_blind_ms == 1_000
    other = played.witness.sightings[-1]._replace(tap="other")
    played.truth["taps"]["other"] = {"gaps": []}
    played.witness.sightings.append(
        other._replace(
            transmission=other.transmission._replace(channel_id=span.channel)
        )
    )
    assert figures_of(played).wrong_blind_ms == length_ms
    played.witness.sightings.pop()


def test_wrong_figure_is_counted(played: Play) -> None:
    """It counts in total and for its channel."""
    played.truth["totals"]["messages"] += 1
    assert figures_of(played).differing == 1


def test_figures_of_several_runs_add_up() -> None:
    """Each group of figures is added separately."""
    one = replace(Figures(plays=1), messages=3)
    one.rebroadcasts["repair", Cause.RETRY] += 2
    both = total([one, one])
    assert (both.plays, both.messages) == (2, 6)
    assert both.rebroadcasts["repair", Cause.RETRY] == 4
    assert both.losses == Figures().losses
