"""Every limit once: dashboards draw them, rules compare with them.

Durations are those of life; a rule file made for faster traffic divides them.
Limits that compare event times with each other are in seconds of event time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sds_core.observer.settings import DEFAULTS

SLICE = timedelta(minutes=5)
"""Deliveries and acknowledgements are counted in slices of this length."""

SLICE_INTERVAL = timedelta(minutes=1)
"""How often a slice is recorded.

Longer windows add slices up, so this must be the interval of their rules' group.
"""


@dataclass(frozen=True, slots=True)
class BurnRate:
    """One pair of windows of an alert on an error budget.

    Attributes:
        factor: How many times as fast as the objective allows the budget is used up.
        long: Window that shows that it matters.
        short: Window that shows that it goes on.
        severity: Of the alert.
        least_events: With fewer in the long window the share of failures says little:
            quiet and tiny channels alert nobody.
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
"""Factors and windows for a period of 30 days.

Google, The Site Reliability Workbook, chapter 5, "Recommended parameters"; the pair of
a day from slok/sloth (internal/alert/windows/google-30d.yaml): 10 % in a day.
"""

BEFORE_WINDOW = timedelta(days=1)
"""How old a figure may be with which one after a gap is compared."""

BLIND_FOR = timedelta(minutes=1)
"""A scrape or two: a verdict of blindness stays for ten minutes anyway."""

BLIND_STILL = timedelta(minutes=15)
"""Longer than the verdict outlasts a hole: the taps are still in trouble."""

LOSS_WINDOW = timedelta(minutes=15)
LOST_MESSAGES = 1
MANY_LOST_MESSAGES = 10
"""In `LOSS_WINDOW`; many are an outage."""

REPAIR_WINDOW = timedelta(hours=1)
EXPIRED_SHARE = 0.5
LEAST_EXPIRED = 10
"""Repair episodes in `REPAIR_WINDOW`: share that expired, and least number."""

REDUNDANT_SHARE = 0.6
LEAST_REDUNDANT = 50
"""Responses in `REPAIR_WINDOW`: share that was redundant, and least number.

Below this lie the 37 to 45 % that are usual (docs/figures.md, section 7).
"""

SATURATED_RATIO = DEFAULTS.saturated_rate
NEAR_SATURATION_RATIO = SATURATED_RATIO / 2
"""False-positive rate of a channel's fullest filter."""

NEAR_SATURATION_FOR = timedelta(minutes=15)

COLLISION_WINDOW = timedelta(hours=1)
EVICTION_WINDOW = timedelta(hours=1)

TAP_SILENT_SECONDS = 4 * DEFAULTS.tap_hole_ms / 1000
"""Event time by which one tap is behind the newest: four holes, twelve heartbeats."""

TAP_SILENT_FOR = timedelta(minutes=5)
TAP_SEEN_WITHIN = timedelta(days=1)
"""A tap that was there so lately is missed, also when the monitor has forgotten it."""

TAP_MISSING_WINDOW = timedelta(hours=1)
TAP_MISSING_RECORDS = 10
"""What one tap lacks now and then another one has."""

MONITOR_DOWN_FOR = timedelta(minutes=5)
MONITOR_SEEN_WITHIN = timedelta(days=7)
"""A monitor that was there so lately is missed."""

STOPPED_WINDOW = timedelta(minutes=15)
"""Heartbeats alone make a batch every few seconds."""

STOPPED_SEEN_BEFORE = timedelta(minutes=10)
"""Longer than a start takes, with what the checkpoint holds."""

BEHIND_SECONDS = 300
"""Event-time lag of an alert: what a large batch or a restart takes is no trouble."""

BEHIND_FOR = timedelta(minutes=5)
BEHIND_STILL = timedelta(minutes=30)
"""Longer than it takes to catch up after an outage of hours."""

RESTART_WINDOW = timedelta(hours=1)
RESTARTS = 3

DEAD_LETTER_WINDOW = timedelta(hours=1)
DEAD_LETTERS = 10
"""Of one reason: a stray record is no trouble, a tap at odds with the contract is."""

RECORDS_LOST_WINDOW = timedelta(days=1)

HISTORY_WINDOW = timedelta(minutes=10)
"""Files take their rows once a minute, so that the number falls within this."""

HISTORY_STUCK_FOR = timedelta(minutes=20)

LABELS_FOR = timedelta(minutes=15)

EPOCH_MESSAGE_LIMIT = 100
"""`rlnRelayUserMessageLimit` of 64/WAKU2-NETWORK (vacp2p/rfc-index@19cfc820).

A membership may have less, so that the dashboard has a field for it.
"""

MIRROR_DOWN_FOR = timedelta(minutes=5)
MIRROR_SEEN_WITHIN = timedelta(days=1)
"""A mirror that was there so lately is missed."""

NODE_DOWN_FOR = timedelta(minutes=5)

SPOOLING_FOR = timedelta(minutes=10)
PAUSED_FOR = timedelta(minutes=1)

MIRROR_LOSS_WINDOW = timedelta(hours=1)
MIRROR_LOSSES = 3
"""A single one can be a node that was restarted."""
