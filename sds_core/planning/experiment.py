"""Simulates a planned channel once, and measures the result.

The simulation knows which messages arrived, so figures need no evidence from filters.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from sds_core.planning.channel import DAY_S, MAX_SEGMENT_BYTES, ChannelPlan
from sds_core.planning.outcome import SEGMENT_SPACING_MS, Measurement, Outcome
from sds_core.reading import TableError
from sds_core.simulation.delays import Lognormal
from sds_core.simulation.scenario import (
    LONGEST_S,
    Absences,
    ChannelGroup,
    Churn,
    Network,
    Scenario,
    Spell,
    Traffic,
)
from sds_core.simulation.simulator import simulate

__all__ = ["RECEPTIONS", "Outcome", "Times", "run", "scenario_of", "times_of"]

RECEPTIONS: Final = 60_000
"""Default of the planned number of frames that all participants receive in a run.

A run with this number takes 2 to 3 s of CPU time.
"""

MAX_RECEPTIONS: Final = 100_000_000
"""A plan is refused if more frames than this are received in its shortest run."""

LEAST_MESSAGES, MOST_MESSAGES = 10, 200
LONGEST_INTERVAL_S: Final = 600.0
"""Maximum interval between messages in a simulation, s.

If a channel's messages have a longer interval, the simulation uses this maximum. A
longer interval is not needed: retries, repairs and waits for missing messages end
within this time.
"""

_LEADS = (20, 50, 200, 1_000)
"""Allowed numbers of warm-up messages.

Only a few numbers are allowed, so that variants of a plan with slightly different
causal histories have equal traffic.
"""
_LEAD_INTERVAL_S = 2.0
_SYNCS_PER_INTERVAL = 1.5
_RECEPTIONS_PER_RETURN = 300
"""When a participant leaves and returns, its state is stored and restored. This takes
the CPU time of about this number of received frames."""
_LARGE_GROUP = 100
"""Above this number of participants, the first part of the warm-up has no losses.

In a large group, each loss causes many sync messages, so losses in this part would
cause most of the run's frames. The second part has losses, and takes T_max, but at most
300 s. Even this short time is enough, because the first minute with losses has as many
sync messages as later minutes.
"""
_LEAD_QUIET_S = 300.0
_SETTLE_S = 900.0
_MOST_CYCLE_MESSAGES = 5
_START_MS = 1_786_000_000_000
_CHANNEL = "channel"


class Times(NamedTuple):
    """Phases of a run. Times are seconds from the start of the run.

    The warm-up has two parts, which are not measured. In the first part, messages fill
    the causal histories. In the second part, messages are sent at the same rate as in
    the measured time.

    Attributes:
        lead_s: End of the warm-up's first part, in which messages are sent at a high
            rate.
        from_s: End of the warm-up, and start of the measured time.
        until_s: End of the measured time. No new message is sent later.
        end_s: End of the run. Between `until_s` and `end_s`, participants repair the
            messages that others miss.
        interval_s: Mean interval between messages, at most `LONGEST_INTERVAL_S`.
    """

    lead_s: float
    from_s: float
    until_s: float
    end_s: float
    interval_s: float


def times_of(plan: ChannelPlan, receptions: int = RECEPTIONS) -> Times:
    """Return the phases of a run.

    A run measures `LEAST_MESSAGES` to `MOST_MESSAGES` messages. Their number follows
    from `receptions` and from a rough estimate of the sync messages and repairs per
    message. If participants are offline at times, the measured time is extended to the
    mean time from one return of a participant to the next, but at most to five times
    its length.

    `receptions` is the planned number of frames that all participants receive in the
    run. If the causal history is long or the group is large, they receive more frames.
    """
    interval_s = min(DAY_S / plan.messages_per_day, LONGEST_INTERVAL_S)
    segments = sum(plan.segments())
    messages = receptions / _receptions_each(plan, interval_s)
    messages = min(max(messages, LEAST_MESSAGES), MOST_MESSAGES)
    talk_s, settle_s = messages * interval_s, _SETTLE_S
    if plan.offline_share:
        cycle_s = plan.mean_present_s + plan.mean_away_s
        talk_s = max(talk_s, min(cycle_s, _MOST_CYCLE_MESSAGES * talk_s))
        settle_s += plan.mean_away_s + (plan.fetch_after_s or 0.0)
    history = plan.setting("causal_history")
    lead = -(-next(ids for ids in _LEADS if ids >= history) // segments)
    lead_s = lead * min(interval_s, _LEAD_INTERVAL_S)
    quiet_s = _LEAD_QUIET_S
    if plan.participants > _LARGE_GROUP:
        quiet_s = min(quiet_s, plan.setting("t_max_s"))
    from_s = lead_s + quiet_s
    until_s = min(from_s + talk_s, LONGEST_S / 2)
    return Times(lead_s, from_s, until_s, until_s + settle_s, interval_s)


def check_size(plan: ChannelPlan) -> None:
    """Check that the shortest run of a plan ends within about an hour of CPU time.

    Raises:
        TableError: According to a rough estimate, more than `MAX_RECEPTIONS` frames are
            received in the run, or the run takes as long for another reason.
    """
    times = times_of(plan, receptions=0)
    messages = _LEADS[0] + (times.until_s - times.lead_s) / times.interval_s
    receptions = messages * _receptions_each(plan, times.interval_s)
    # After the last message, participants still send sync messages. If participants
    # can be offline for days, these are most of the frames.
    settle_s = times.end_s - times.until_s
    cycle_s = plan.mean_present_s + plan.mean_away_s
    online = plan.participants * (1 - plan.offline_share * plan.mean_away_s / cycle_s)
    receptions += online * settle_s * _syncs_per_s(plan, online)
    # If the periods online and offline are very short, returns are most of the work.
    cycles = times.end_s / cycle_s
    returns = plan.participants * plan.offline_share * cycles
    receptions += _RECEPTIONS_PER_RETURN * returns
    if receptions > MAX_RECEPTIONS:
        problem = (
            f"has about {receptions:,.0f} received frames in a run, but at most "
            f"{MAX_RECEPTIONS:,} are allowed: give fewer participants or messages, or "
            "another mean_away_s"
        )
        raise TableError("the plan", problem)


def _syncs_per_s(plan: ChannelPlan, online: float) -> float:
    interval_s = plan.setting("sync_interval_s")
    if plan.participant().sync_least_share is None:
        # In nim-sds, other traffic does not delay sync messages.
        return float(online / interval_s)
    return float(_SYNCS_PER_INTERVAL / interval_s)


def _receptions_each(plan: ChannelPlan, interval_s: float) -> float:
    # The first summand includes the responses that losses cause. The third is for large
    # groups, in which a few participants send sync messages at the same time.
    frames = (
        sum(plan.segments()) * (1 + 2 * plan.loss)
        + _SYNCS_PER_INTERVAL * interval_s / plan.setting("sync_interval_s")
        + plan.participants / 3
    )
    return float((plan.participants - 1) * frames)


def scenario_of(plan: ChannelPlan, times: Times) -> Scenario:
    """Return the scenario that simulates a plan."""
    data, parity = plan.segments()
    least, most = plan.payload_least_bytes, plan.payload_most_bytes
    if most > MAX_SEGMENT_BYTES:
        least = most = plan.segment_bytes()
    spells = []
    if times.lead_s:
        rate = max(1.0, times.interval_s / _LEAD_INTERVAL_S)
        spells = [Spell(from_s=0.0, until_s=times.lead_s, rate=rate)]
    traffic = Traffic(
        mean_interval_s=times.interval_s,
        burst=data + parity,
        burst_spacing_ms=SEGMENT_SPACING_MS,
        spells=tuple(spells),
        payload_least_bytes=least,
        payload_most_bytes=most,
    )
    absences = Absences(
        share=plan.offline_share,
        mean_present_s=plan.mean_present_s,
        mean_away_s=plan.mean_away_s,
        fetch_after_s=plan.fetch_after_s,
    )
    delay = Lognormal(median_ms=plan.delay_ms, sigma=plan.delay_sigma)
    return Scenario(
        name="plan",
        description="a planned channel",
        duration_s=times.until_s,
        settle_s=times.end_s - times.until_s,
        participants=plan.participants,
        channels=(ChannelGroup(name=_CHANNEL, traffic=traffic),),
        profiles=(plan.share(),),
        network=Network(
            loss=plan.loss,
            delay=delay,
            lossless_until_s=times.lead_s if plan.participants > _LARGE_GROUP else 0.0,
        ),
        churn=Churn(absences=absences if plan.offline_share else ()),
    )


def run(
    plan: ChannelPlan,
    seed: int,
    *,
    receptions: int = RECEPTIONS,
    target_s: float = 5.0,
) -> Outcome:
    """Simulate a plan once; the same arguments give the same outcome.

    If variants of a plan are simulated with the same seed, their traffic and losses are
    similar. `target_s` is the time limit of ``first_peer_in_time``, s. The limits of
    the other figures whose names end in ``_in_time`` are multiples of `target_s`.
    """
    times = times_of(plan, receptions)
    from_ms, until_ms = (
        _START_MS + round(at_s * 1_000) for at_s in (times.from_s, times.until_s)
    )
    measured = Measurement(plan, _CHANNEL, from_ms, until_ms)
    for entry in simulate(scenario_of(plan, times), seed, _START_MS):
        measured.add(entry)
    return measured.outcome(target_s)
