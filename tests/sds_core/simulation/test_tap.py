"""What taps record, number and miss."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest

from sds_core.message_channel.events import Cause
from sds_core.simulation.log import (
    Entry,
    GapCause,
    Heartbeat,
    Sighting,
    TapGap,
    Transmission,
)
from sds_core.simulation.scenario import Scenario
from sds_core.simulation.streams import Agenda, Streams
from sds_core.simulation.world import Tap
from sds_core.wire import Dialect, Frame

START_MS = 1_760_000_000_000


def watched(
    mapping: dict[str, Any], *, every_ms: int = 100, until_s: int = 60, **settings: Any
) -> list[Entry]:
    """Let a tap listen to a frame every so often; it takes 10 ms."""
    mapping["taps"][0].update(settings)
    scenario = Scenario.from_mapping(mapping)
    agenda = Agenda()
    log: list[Entry] = []

    def sighted(at_ms: int, tap: str, seq: int, seen: Transmission) -> None:
        log.append(Sighting(at_ms, tap, seq, seen))

    tap = Tap(scenario.taps[0], 4, START_MS, Streams(5), agenda, sighted, log.append)
    for number, elapsed_ms in enumerate(range(0, until_s * 1_000, every_ms)):
        at_ms = START_MS + elapsed_ms
        agenda.add(at_ms, partial(listen, tap, number))
    for now_ms, action in agenda.until(START_MS + until_s * 1_000):
        action(now_ms)
    return log


def listen(tap: Tap, number: int, now_ms: int) -> None:
    """Let the participants send in turn."""
    tap.listen(number % 4, sent(number, now_ms))


def sent(number: int, at_ms: int) -> Transmission:
    """Make a transmission; the tap looks at its time alone."""
    frame = Frame.build(
        Dialect.SPEC, message_id="m", channel_id="ch", lamport=1, content=b"x"
    )
    return Transmission(
        number, at_ms, "ch", "participant", Cause.CONTENT, frame, b"", "0x", 0
    )


def sightings(log: list[Entry]) -> list[Sighting]:
    """Return the records of frames."""
    return [entry for entry in log if isinstance(entry, Sighting)]


def gaps(log: list[Entry]) -> list[TapGap]:
    """Return the stretches in which the tap recorded nothing."""
    return [entry for entry in log if isinstance(entry, TapGap)]


def heartbeats(log: list[Entry]) -> list[Heartbeat]:
    """Return the heartbeats."""
    return [entry for entry in log if isinstance(entry, Heartbeat)]


def test_tap_records_what_it_receives_when_it_receives_it(
    mapping: dict[str, Any],
) -> None:
    """Numbers go up from 1 without holes."""
    seen = sightings(watched(mapping))
    assert [one.seq for one in seen] == list(range(1, len(seen) + 1))
    assert [one.transmission.number for one in seen] == list(range(len(seen)))
    assert {one.at_ms - one.transmission.at_ms for one in seen} == {10}
    assert {one.tap for one in seen} == {"tap"}


def test_heartbeats_come_on_time_with_the_last_number(mapping: dict[str, Any]) -> None:
    """Every 5 s from the start, 0 before there was any frame."""
    beats = heartbeats(watched(mapping, until_s=20))
    assert [(one.at_ms - START_MS, one.seq) for one in beats] == [
        (0, 0),
        (5_000, 50),
        (10_000, 100),
        (15_000, 150),
    ]


def test_blackout_records_nothing_and_numbers_continue(
    mapping: dict[str, Any],
) -> None:
    """Only the silence shows it: no number is missing."""
    log = watched(mapping, blackouts=[{"from_s": 10, "until_s": 25}])
    seen = sightings(log)
    (gap,) = gaps(log)
    assert gap == TapGap(START_MS + 10_000, "tap", START_MS + 25_000, GapCause.DOWN)
    records = [one for one in log if one is not gap]
    assert not [one for one in records if 10_000 <= one.at_ms - START_MS < 25_000]
    assert len(seen) == 450
    assert [one.seq for one in seen] == list(range(1, 451))
    assert [one.at_ms - START_MS for one in heartbeats(log)][:4] == [
        0,
        5_000,
        25_000,
        30_000,
    ]


def test_deaf_tap_still_sends_heartbeats(mapping: dict[str, Any]) -> None:
    """No header shows that it missed frames."""
    log = watched(mapping, deaf=[{"from_s": 10, "until_s": 25}])
    seen = sightings(log)
    assert not [one for one in seen if 10_000 <= one.at_ms - START_MS < 25_000]
    assert [one.seq for one in seen] == list(range(1, 451))
    assert len(heartbeats(log)) == 12
    assert [one.seq for one in heartbeats(log)][2:5] == [100, 100, 100]
    assert [one.cause for one in gaps(log)] == [GapCause.DEAF]


def test_records_lost_behind_the_tap_leave_holes(mapping: dict[str, Any]) -> None:
    """Numbers are given before the loss, and heartbeats have them."""
    log = watched(mapping, record_loss=0.1, every_ms=10)
    seen = sightings(log)
    given = 5_999  # The last frame is still under way.
    assert abs(given - len(seen) - 600) <= 5 * math.sqrt(6_000 * 0.1 * 0.9)
    assert all(one.seq == one.transmission.number + 1 for one in seen)
    assert heartbeats(log)[-1].seq == 5_499
    lost = [one for one in gaps(log) if one.cause is GapCause.RECORD_LOST]
    assert len(lost) == given - len(seen)
    assert {one.until_ms - one.at_ms for one in lost} == {1}


def test_loss_before_the_tap_leaves_no_holes(mapping: dict[str, Any]) -> None:
    """A tap numbers only what it receives."""
    seen = sightings(watched(mapping, loss=0.1, every_ms=10))
    assert abs(len(seen) - 5_400) <= 5 * math.sqrt(6_000 * 0.1 * 0.9)
    assert [one.seq for one in seen] == list(range(1, len(seen) + 1))


def test_replicas_have_a_number_and_a_time_of_their_own(
    mapping: dict[str, Any],
) -> None:
    """The same transmission again, after another delay."""
    seen = sightings(watched(mapping, replica_share=0.2, every_ms=20))
    numbers = [one.transmission.number for one in seen]
    replicas = len(numbers) - len(set(numbers))
    assert abs(replicas - 600) <= 5 * math.sqrt(3_000 * 0.2 * 0.8)
    assert {one.at_ms - one.transmission.at_ms for one in seen} == {10, 20}
    assert [one.seq for one in seen] == list(range(1, len(seen) + 1))


def test_tap_that_starts_late_has_no_earlier_records(mapping: dict[str, Any]) -> None:
    """Not even heartbeats; its first number is 1."""
    log = watched(mapping, start_s=12.5)
    assert min(one.at_ms for one in log) == START_MS + 12_500
    assert sightings(log)[0].seq == 1
    assert [one.at_ms - START_MS for one in heartbeats(log)][:2] == [12_500, 17_500]


@pytest.mark.parametrize("offset_ms", [-2_000, 2_000])
def test_times_are_those_of_the_taps_own_clock(
    mapping: dict[str, Any], offset_ms: int
) -> None:
    """For frames as for heartbeats; 1 % too fast besides."""
    log = watched(mapping, clock_offset_ms=offset_ms, clock_drift_ppm=10_000)
    assert heartbeats(log)[2].at_ms == START_MS + 10_000 + offset_ms + 100
    late = sightings(log)[200]
    assert late.at_ms == START_MS + 20_010 + offset_ms + 200


def test_jumps_of_the_clock_show_in_the_times(mapping: dict[str, Any]) -> None:
    """Forwards and back again; the tap itself misses nothing."""
    jumps = [{"at_s": 20.0, "by_ms": 90_000}, {"at_s": 40.0, "by_ms": -60_000}]
    log = watched(mapping, clock_jumps=jumps)
    ahead_ms = [
        one.at_ms - START_MS - 5_000 * place
        for place, one in enumerate(heartbeats(log))
    ]
    assert ahead_ms == [0] * 4 + [90_000] * 4 + [30_000] * 4
    assert not gaps(log)
