"""All limits that dashboards draw and rules compare with values.

Durations are in real time; rules for faster traffic divide them by its speed. Limits
that compare event times with each other are in seconds of event time.
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
"""Interval at which rules record slices. Figures of longer windows are sums of
slices."""


@dataclass(frozen=True, slots=True)
class BurnRate:
    """A long and a short window of an alert on an error budget.

    The long window shows that the failures use up a significant part of the budget. The
    short window shows that the failures continue. If the long window has fewer than
    `least_events` events, the share of failures is not significant. `factor` is the
    burn rate.
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
"""Factors and windows for a period of 30 days: Google, The Site Reliability Workbook,
chapter 5, "Recommended parameters". The windows for one day are from slok/sloth
(internal/alert/windows/google-30d.yaml): the alert fires if the failures of one day use
up 10 % of the budget."""

BEFORE_WINDOW = timedelta(days=1)
"""If a gap in a series is longer than this, the values before and after the gap are not
compared."""

BLIND_FOR = timedelta(minutes=1)
"""A wait of one or two scrapes is enough, because a blind verdict stays blind for ten
minutes."""

BLIND_STILL = timedelta(minutes=15)
"""After a single capture gap, a channel is blind for less time than this."""

LOSS_WINDOW = timedelta(minutes=15)
LOST_MESSAGES = 1
MANY_LOST_MESSAGES = 10
"""Numbers of lost messages in `LOSS_WINDOW`; the larger number indicates an outage."""

REPAIR_WINDOW = timedelta(hours=1)
EXPIRED_SHARE = 0.5
"""Share of repair episodes that expired in `REPAIR_WINDOW`; see `LEAST_EXPIRED`."""

REDUNDANT_SHARE = 0.6
LEAST_REDUNDANT = 50
"""Share and minimum number of redundant responses in `REPAIR_WINDOW`. Some redundant
responses are usual: holders of a message wait for random times, and some answer before
another holder's response arrives."""

SATURATED_RATIO = DEFAULTS.saturated_rate
NEAR_SATURATION_RATIO = SATURATED_RATIO / 2
"""Limits on the false-positive rate of a channel's fullest filter."""

NEAR_SATURATION_FOR = timedelta(minutes=15)

COLLISION_WINDOW = timedelta(hours=1)
EVICTION_WINDOW = timedelta(hours=1)

TAP_SILENT_SECONDS = 4 * DEFAULTS.tap_hole_ms / 1000
"""A tap is silent if its event time lags behind the newest tap's by more than this:
twelve heartbeat intervals."""

TAP_SILENT_FOR = timedelta(minutes=5)
TAP_SEEN_WITHIN = timedelta(days=1)
"""If a tap sent records within this time, it is expected to run, even if the monitor
forgot it."""

TAP_CLOCK_SECONDS = WRONG_MS / 1000
"""If a tap's clock differs from Kafka's by twice this time, live records become dead
letters."""

TAP_CLOCK_FOR = timedelta(minutes=2)
"""A reading of Kafka's clock may be one minute old, so the alert waits longer."""

TAP_MISSING_WINDOW = timedelta(hours=1)
TAP_MISSING_RECORDS = 10
"""If a tap misses fewer records than this, other taps usually have the missing
records."""

MONITOR_DOWN_FOR = timedelta(minutes=5)
MONITOR_SEEN_WITHIN = timedelta(days=7)
"""If a monitor ran within this time, it is expected to run now."""

STOPPED_WINDOW = timedelta(minutes=15)
"""A batch takes much less time than this, and heartbeats alone cause a batch every few
seconds."""

STOPPED_SEEN_BEFORE = timedelta(minutes=10)
"""Startup takes less time than this, even with a large checkpoint."""

KAFKA_SILENT_SECONDS = STALE_S
KAFKA_AWAY_FOR = timedelta(minutes=5)
"""A broker restarts in less time than this."""

BEHIND_SECONDS = 300
"""Event-time lag; after a restart or during a large batch, the lag is shorter."""

BEHIND_FOR = timedelta(minutes=5)
BEHIND_STILL = timedelta(minutes=30)
"""Even after an outage of hours, the job catches up in less time than this."""

CLOCK_SECONDS = WRONG_MS / 1000
CLOCK_CRITICAL_SECONDS = MAX_AHEAD_MS / 1000
"""Above `CLOCK_CRITICAL_SECONDS`, live records become dead letters."""

CLOCK_FOR = timedelta(minutes=2)
"""Within this time, the monitor compares the clocks four times. After a machine starts,
its clock may be wrong for some time."""

RESTART_WINDOW = timedelta(hours=1)
RESTARTS = 3

DEAD_LETTER_WINDOW = timedelta(hours=1)
DEAD_LETTERS = 10
"""The alert fires at this number of dead letters with the same reason. A single dead
letter is harmless, but a misconfigured tap causes many."""

RECORDS_LOST_WINDOW = timedelta(days=1)

HISTORY_WINDOW = timedelta(minutes=10)
"""Pending rows are written to files once a minute, so their number falls within this
window."""

HISTORY_STUCK_FOR = timedelta(minutes=20)

LABELS_FOR = timedelta(minutes=15)

UNACKNOWLEDGED_WINDOW = timedelta(hours=1)
UNACKNOWLEDGED_SHARE = DEFAULTS.unacknowledged_percent / 100
MOSTLY_UNACKNOWLEDGED_SHARE = 0.5
LEAST_UNACKNOWLEDGED = 10
"""Shares and minimum number of MVDS messages that receivers did not acknowledge. At
`UNACKNOWLEDGED_SHARE`, a group counts as failing. Senders repeat a message until its
deadline, so most messages fail only if a receiver or a connection is broken."""

UNANSWERED_WINDOW = timedelta(hours=1)
UNANSWERED_REQUESTS = 10
"""MVDS requests that no MESSAGE answered: nodes repeat a request, so few requests fail
by chance."""

BUDGET_NEARLY_SPENT = 0.9
"""Share of `ObserverSettings.epoch_messages`; Reliable Channel warns at the same
share."""

LIMIT_WITHIN = timedelta(days=7)
"""Time in which operators can change clients or split a channel. It is wall time,
whatever the traffic's speed."""

MIRROR_DOWN_FOR = timedelta(minutes=5)
MIRROR_SEEN_WITHIN = timedelta(days=1)
"""If a mirror ran within this time, it is expected to run now."""

NODE_DOWN_FOR = timedelta(minutes=5)

SPOOLING_FOR = timedelta(minutes=10)
PAUSED_FOR = timedelta(minutes=1)

MIRROR_INCOMPLETE_FOR = timedelta(minutes=10)
"""If a message was only late, the next audit finds it."""

AUDIT_FAILING_WITHIN = timedelta(minutes=30)
AUDIT_FAILING_FOR = timedelta(minutes=10)
"""An audit needs a store or a peer; a restart of either takes less time than this."""

MIRROR_LOSS_WINDOW = timedelta(hours=1)
MIRROR_LOSSES = 3
"""The restart of one node can cause a single loss."""
