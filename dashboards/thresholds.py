"""All limits: dashboards draw them, rules compare with them.

Durations are in real time; a rule file for faster traffic divides them.
Limits that compare event times with each other are in seconds of event time.
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
"""Interval of the rules that record slices. Longer windows are sums of slices."""


@dataclass(frozen=True, slots=True)
class BurnRate:
    """One pair of windows of an alert on an error budget.

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
(internal/alert/windows/google-30d.yaml): the alert fires if a day uses 10 % of the
budget."""

BEFORE_WINDOW = timedelta(days=1)
"""Maximum age of the last figure before a gap that is compared with the next figure."""

BLIND_FOR = timedelta(minutes=1)
"""One or two scrapes are enough, because the verdict stays blind for ten minutes."""

BLIND_STILL = timedelta(minutes=15)
"""A single capture gap blinds for less time. Longer blindness means further gaps."""

LOSS_WINDOW = timedelta(minutes=15)
LOST_MESSAGES = 1
MANY_LOST_MESSAGES = 10
"""Numbers of lost messages in `LOSS_WINDOW`; the larger number indicates an outage."""

REPAIR_WINDOW = timedelta(hours=1)
EXPIRED_SHARE = 0.5
"""Share of expired repair episodes in `REPAIR_WINDOW`; see `LEAST_EXPIRED`."""

REDUNDANT_SHARE = 0.6
LEAST_REDUNDANT = 50
"""Share and minimum number of redundant responses in `REPAIR_WINDOW`. Some are usual:
holders wait for random times, and some answer before they receive another response."""

SATURATED_RATIO = DEFAULTS.saturated_rate
NEAR_SATURATION_RATIO = SATURATED_RATIO / 2
"""False-positive rate of a channel's fullest filter."""

NEAR_SATURATION_FOR = timedelta(minutes=15)

COLLISION_WINDOW = timedelta(hours=1)
EVICTION_WINDOW = timedelta(hours=1)

TAP_SILENT_SECONDS = 4 * DEFAULTS.tap_hole_ms / 1000
"""Lag of a tap behind the newest tap, event time: twelve heartbeat intervals."""

TAP_SILENT_FOR = timedelta(minutes=5)
TAP_SEEN_WITHIN = timedelta(days=1)
"""A tap with records within this time is expected, even if the monitor forgot it."""

TAP_CLOCK_SECONDS = WRONG_MS / 1000
"""If a clock differs from Kafka's by twice as much, live records are dead letters."""

TAP_CLOCK_FOR = timedelta(minutes=2)
"""Records may be compared with a clock that is a minute old: the alert waits longer."""

TAP_MISSING_WINDOW = timedelta(hours=1)
TAP_MISSING_RECORDS = 10
"""If a tap misses fewer records, another tap usually has these records."""

MONITOR_DOWN_FOR = timedelta(minutes=5)
MONITOR_SEEN_WITHIN = timedelta(days=7)
"""A monitor that ran within this time is expected to run."""

STOPPED_WINDOW = timedelta(minutes=15)
"""A batch is much shorter: heartbeats alone cause a batch every few seconds."""

STOPPED_SEEN_BEFORE = timedelta(minutes=10)
"""Even a start with a large checkpoint takes less time than this."""

KAFKA_SILENT_SECONDS = STALE_S
KAFKA_AWAY_FOR = timedelta(minutes=5)
"""A broker restarts in less time than this."""

BEHIND_SECONDS = 300
"""Event-time lag: longer than the lag of a large batch or a restart."""

BEHIND_FOR = timedelta(minutes=5)
BEHIND_STILL = timedelta(minutes=30)
"""Even after an outage of hours, the job catches up in less time than this."""

CLOCK_SECONDS = WRONG_MS / 1000
CLOCK_CRITICAL_SECONDS = MAX_AHEAD_MS / 1000
"""Above `CLOCK_CRITICAL_SECONDS`, live records become dead letters."""

CLOCK_FOR = timedelta(minutes=2)
"""Four comparisons occur. After a start, a machine may still have to set its clock."""

RESTART_WINDOW = timedelta(hours=1)
RESTARTS = 3

DEAD_LETTER_WINDOW = timedelta(hours=1)
DEAD_LETTERS = 10
"""Dead letters with one reason: one is harmless, but a wrong tap writes many."""

RECORDS_LOST_WINDOW = timedelta(days=1)

HISTORY_WINDOW = timedelta(minutes=10)
"""Files accept pending rows once a minute, so their number falls within this window."""

HISTORY_STUCK_FOR = timedelta(minutes=20)

LABELS_FOR = timedelta(minutes=15)

UNACKNOWLEDGED_WINDOW = timedelta(hours=1)
UNACKNOWLEDGED_SHARE = DEFAULTS.unacknowledged_percent / 100
MOSTLY_UNACKNOWLEDGED_SHARE = 0.5
LEAST_UNACKNOWLEDGED = 10
"""Shares and minimum number of MVDS messages that a receiver does not acknowledge. A
group is failing from `UNACKNOWLEDGED_SHARE` on. Senders repeat until the deadline, so
most pairs fail only if a receiver or a connection is broken."""

UNANSWERED_WINDOW = timedelta(hours=1)
UNANSWERED_REQUESTS = 10
"""Requests of MVDS without a MESSAGE: nodes repeat a request, so few fail by chance."""

BUDGET_NEARLY_SPENT = 0.9
"""Share of `ObserverSettings.epoch_messages` at which Reliable Channel also warns."""

LIMIT_WITHIN = timedelta(days=7)
"""Wall time, at any speed, that operators need to change clients or split a channel."""

MIRROR_DOWN_FOR = timedelta(minutes=5)
MIRROR_SEEN_WITHIN = timedelta(days=1)
"""A mirror that ran within this time is expected to run."""

NODE_DOWN_FOR = timedelta(minutes=5)

SPOOLING_FOR = timedelta(minutes=10)
PAUSED_FOR = timedelta(minutes=1)

MIRROR_INCOMPLETE_FOR = timedelta(minutes=10)
"""The next audit finds a message that a mirror has received late."""

AUDIT_FAILING_WITHIN = timedelta(minutes=30)
AUDIT_FAILING_FOR = timedelta(minutes=10)
"""An audit needs a store or a peer, which may restart within half an hour."""

MIRROR_LOSS_WINDOW = timedelta(hours=1)
MIRROR_LOSSES = 3
"""One loss alone can be the restart of a node."""
