"""All limits of alerts and dashboards.

Durations are in real time. If traffic is faster than real time, its rules divide the
durations by the traffic's speed. Limits on the difference between two event times are
in seconds of event time, and are not divided.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sds_core.observer.clock import WRONG_MS
from sds_core.observer.freshness import STALE_S
from sds_core.observer.record import MAX_AHEAD_MS
from sds_core.observer.sds.excused import LEAST_EXPIRED as LEAST_EXPIRED
from sds_core.observer.settings import DEFAULTS

SLICE = timedelta(minutes=5)
"""Deliveries and acknowledgements are counted in slices of this length."""

SLICE_INTERVAL = timedelta(minutes=1)
"""Interval at which a recording rule records a slice. Figures of longer windows are
computed from slices."""

RETRACTED_WITHIN = timedelta(milliseconds=DEFAULTS.horizon_ms)
"""Maximum time from a loss to its retraction. The monitor follows no message for longer
than this."""


@dataclass(frozen=True, slots=True)
class BurnRate:
    """Windows and limits of an alert on an error budget.

    In both windows, the burn rate must exceed `factor`. The long window shows that the
    failures use up a significant part of the budget. The short window shows that the
    failures continue. If the long window has fewer than `least_events` events, the
    alert does not fire, because the share of failures is not significant.
    """

    factor: float
    long: timedelta
    short: timedelta
    severity: str
    least_events: int


BURN_RATES = (
    BurnRate(14.4, timedelta(hours=1), timedelta(minutes=5), "critical", 30),
    BurnRate(6, timedelta(hours=6), timedelta(minutes=30), "critical", 60),
    BurnRate(3, timedelta(days=1), timedelta(hours=2), "warning", 120),
    BurnRate(1, timedelta(days=3), timedelta(hours=6), "warning", 240),
)
"""Burn rates and windows for an error budget of 30 days. Source: Google, The Site
Reliability Workbook, chapter 5, "Recommended parameters". The entry with the long
window of one day is from slok/sloth (internal/alert/windows/google-30d.yaml). Its alert
fires if the failures of one day use up 10 % of the budget."""

BEFORE_WINDOW = timedelta(days=1)
"""How long before a window `promql.growth` searches for the last earlier value of a
series. After a longer gap in the series, the values before the gap are ignored."""

BLIND_FOR = timedelta(minutes=1)
"""The warning fires if channels are blind for this time. One or two scrapes are enough,
because a channel that becomes blind stays blind for ten minutes."""

BLIND_STILL = timedelta(minutes=15)
"""The alert becomes critical if channels are blind for this time. After a single
capture gap, a channel is blind for a shorter time."""

LOSS_WINDOW = timedelta(minutes=15)
LOST_MESSAGES = 1
MANY_LOST_MESSAGES = 10
"""Numbers of lost messages in `LOSS_WINDOW` at which a warning or a critical alert
fires. The larger number indicates an outage."""

REPAIR_WINDOW = timedelta(hours=1)
EXPIRED_SHARE = 0.5
"""The alert fires if more than this share of the repair episodes that ended in
`REPAIR_WINDOW` expired, and at least `LEAST_EXPIRED` episodes expired."""

REDUNDANT_SHARE = 0.6
LEAST_REDUNDANT = 50
"""The alert fires if at least `LEAST_REDUNDANT` responses in `REPAIR_WINDOW`, and more
than `REDUNDANT_SHARE` of all responses, are redundant. Some redundant responses are
usual: each holder of a message waits for a random time, and may answer before another
holder's response arrives."""

SATURATED_RATIO = DEFAULTS.saturated_rate
NEAR_SATURATION_RATIO = SATURATED_RATIO / 2
"""Limits on the false-positive rate of a channel's fullest filter."""

NEAR_SATURATION_FOR = timedelta(minutes=15)

COLLISION_WINDOW = timedelta(hours=1)
EVICTION_WINDOW = timedelta(hours=1)

TAP_SILENT_SECONDS = 4 * DEFAULTS.tap_hole_ms / 1000
"""A tap counts as silent if its newest record is older, by more than this, than the
newest record of all taps. The value equals twelve heartbeat intervals."""

TAP_SILENT_FOR = timedelta(minutes=5)
TAP_SEEN_WITHIN = timedelta(days=1)
"""A tap that sent records within this time is expected to run now, even if the monitor
has forgotten the tap."""

TAP_CLOCK_SECONDS = WRONG_MS / 1000
"""The alert fires if a tap's clock differs from Kafka's clock by more than this. If the
tap's clock is ahead by more than twice this time, the tap's live records become dead
letters."""

TAP_CLOCK_FOR = timedelta(minutes=2)
"""The alert fires if the clock is wrong for this time. The time is longer than one
minute, because the monitor's reading of Kafka's clock may be one minute old."""

TAP_MISSING_WINDOW = timedelta(hours=1)
TAP_MISSING_RECORDS = 10
"""The alert fires if a tap misses this number of records in `TAP_MISSING_WINDOW`. If
fewer records are missing, other taps usually have them."""

MONITOR_DOWN_FOR = timedelta(minutes=5)
MONITOR_SEEN_WITHIN = timedelta(days=7)
"""A monitor that ran within this time is expected to run now."""

STOPPED_WINDOW = timedelta(minutes=15)
"""The alert fires if the job finishes no batch within this time. A batch takes much
less time, and heartbeats alone cause a batch every few seconds."""

STOPPED_SEEN_BEFORE = timedelta(minutes=10)
"""The alert fires only if the monitor already exported metrics this long ago. Startup
takes less time, even with a large checkpoint."""

KAFKA_SILENT_SECONDS = STALE_S
KAFKA_AWAY_FOR = timedelta(minutes=5)
"""The alert fires if Kafka is unreachable for this time. A broker restarts in less
time."""

BEHIND_SECONDS = 300
"""The alert fires if the event-time lag is longer than this. After a restart or during
a large batch, the lag is usually shorter."""

BEHIND_FOR = timedelta(minutes=5)
BEHIND_STILL = timedelta(minutes=30)
"""The alert becomes critical if the lag exceeds `BEHIND_SECONDS` for this time. Even
after an outage of hours, the job catches up in less time."""

CLOCK_SECONDS = WRONG_MS / 1000
CLOCK_CRITICAL_SECONDS = MAX_AHEAD_MS / 1000
"""Differences between the monitor's clock and Kafka's clock above which a warning or a
critical alert fires. If the monitor's clock is behind by more than
`CLOCK_CRITICAL_SECONDS`, live records become dead letters."""

CLOCK_FOR = timedelta(minutes=2)
"""The alert fires if the clock is wrong for this time, in which the monitor compares
the clocks four times. The alert waits, because a machine's clock may be wrong shortly
after the machine starts."""

RESTART_WINDOW = timedelta(hours=1)
RESTARTS = 3

DEAD_LETTER_WINDOW = timedelta(hours=1)
DEAD_LETTERS = 10
"""The alert fires at this number of dead letters with the same reason. A single dead
letter is harmless, but a misconfigured tap causes many."""

RECORDS_LOST_WINDOW = timedelta(days=1)

HISTORY_STALLED = timedelta(minutes=30)

LABELS_FOR = timedelta(minutes=15)

UNACKNOWLEDGED_WINDOW = timedelta(hours=1)
UNACKNOWLEDGED_SHARE = DEFAULTS.unacknowledged_percent / 100
MOSTLY_UNACKNOWLEDGED_SHARE = 0.5
LEAST_UNACKNOWLEDGED = 10
"""If more than `UNACKNOWLEDGED_SHARE` of a group's MVDS messages are unacknowledged,
the group counts as failing, and a warning fires. Above `MOSTLY_UNACKNOWLEDGED_SHARE`,
the alert is critical. Both alerts need at least `LEAST_UNACKNOWLEDGED` such messages.
Senders repeat a message until its deadline, so most messages fail only if a receiver or
a connection is broken."""

UNANSWERED_WINDOW = timedelta(hours=1)
UNANSWERED_REQUESTS = 10
"""The alert fires at this number of MVDS requests that no MESSAGE answered. Nodes
repeat a request, so few requests stay unanswered by chance."""

BUDGET_NEARLY_SPENT = 0.9
"""The alert fires if a participant has used this share of
`ObserverSettings.epoch_messages`. Reliable Channel warns its application at the same
share."""

LIMIT_WITHIN = timedelta(days=7)
"""The alert fires if a channel may reach a limit within this time. Operators need the
time to change clients or split the channel. It is wall time, whatever the traffic's
speed."""

MIRROR_DOWN_FOR = timedelta(minutes=5)
MIRROR_SEEN_WITHIN = timedelta(days=1)
"""A mirror that ran within this time is expected to run now."""

NODE_DOWN_FOR = timedelta(minutes=5)

SPOOLING_FOR = timedelta(minutes=10)
PAUSED_FOR = timedelta(minutes=1)

MIRROR_INCOMPLETE_FOR = timedelta(minutes=10)
"""The alert fires if audits report missing messages for this time. If a message was
only late, the next audit no longer reports it."""

AUDIT_FAILURES = 2
"""The alert fires only at this number of consecutive failed audits, however rare the
audits are. A single failure may result from the restart of a store or a peer."""

AUDIT_FAILING_WITHIN = timedelta(minutes=30)
AUDIT_FAILING_FOR = timedelta(minutes=10)
"""The alert fires if audits fail for this time. An audit needs a store or a peer, which
restarts in less time."""

MIRROR_LOSS_WINDOW = timedelta(hours=1)
MIRROR_LOSSES = 3
"""The alert fires at this number of probable losses in `MIRROR_LOSS_WINDOW`. A single
loss may result from the restart of a node."""
