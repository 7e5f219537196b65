"""Alerts on problems of a channel, except alerts on its SLOs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from dashboards import CAPACITY, CHANNEL, REPAIR
from dashboards import thresholds as at
from dashboards.rules.alert import Alert, Severity, Subject, graded
from dashboards.rules.pace import LIFE, Pace
from dashboards.rules.promql import (
    earliest,
    growth,
    latest,
    shown,
    summed,
    unless_excused,
)
from dashboards.rules.recording import NET_LOSSES

_alert = partial(Alert, subject=Subject.CHANNEL)


def channel_alerts(pace: Pace) -> Iterator[Alert]:
    """Yield the alerts. If taps may have caused a problem, no alert fires on it."""
    # Net losses may fall in the window, because a loss from before the window may be
    # retracted.
    lost = growth(NET_LOSSES, at.LOSS_WINDOW, pace, may_fall=True)
    for severity, least in graded(at.LOST_MESSAGES, at.MANY_LOST_MESSAGES):
        yield _alert(
            "SdsMessagesLost",
            severity,
            shown(
                unless_excused(
                    f"{lost} >= {least}", "lost", least, pace(at.LOSS_WINDOW)
                )
            ),
            "Messages are lost: only their senders have them.",
            '{{ $labels.name }}: {{ printf "%.0f" $value }} message(s) found lost to '
            f"everybody in the last {LIFE(at.LOSS_WINDOW)}.",
            dashboard=CHANNEL,
        )
    hour = pace(at.REPAIR_WINDOW)
    expired = _share(
        "sds_repair_episodes_total",
        'outcome="expired"',
        hour,
        at.EXPIRED_SHARE,
        at.LEAST_EXPIRED,
    )
    yield _alert(
        "SdsRepairExpiring",
        Severity.WARNING,
        shown(unless_excused(expired, "repair_expired", at.LEAST_EXPIRED, hour)),
        "Most repair requests get no answer.",
        f"{{{{ $labels.name }}}}: in the last {LIFE(at.REPAIR_WINDOW)}, "
        "{{ $value | humanizePercentage }} of the ended repair episodes got no answer.",
        dashboard=REPAIR,
    )
    redundant = _share(
        "sds_repair_responses_total",
        'redundant="true"',
        hour,
        at.REDUNDANT_SHARE,
        at.LEAST_REDUNDANT,
    )
    yield _alert(
        "SdsRedundantRepairStorm",
        Severity.WARNING,
        shown(redundant),
        "Many participants answer the same repair requests.",
        "{{ $labels.name }}: {{ $value | humanizePercentage }} of the responses to "
        f"repair requests in the last {LIFE(at.REPAIR_WINDOW)} were redundant.",
        dashboard=REPAIR,
    )
    fullest = latest("sds_bloom_false_positive_ratio")
    yield _alert(
        "SdsBloomNearSaturation",
        Severity.WARNING,
        shown(f"{fullest} >= {at.NEAR_SATURATION_RATIO:g}"),
        "A bloom filter is nearly saturated.",
        "{{ $labels.name }}: the fullest filter has a false-positive rate of "
        f"{{{{ $value | humanizePercentage }}}}. Above {at.SATURATED_RATIO:.0%}, a "
        "filter counts as saturated.",
        at.NEAR_SATURATION_FOR,
        dashboard=CAPACITY,
    )
    used = latest("sds_epoch_budget_used_ratio", "epoch")
    yield _alert(
        "SdsRateLimitBudgetNearlySpent",
        Severity.WARNING,
        shown(f"{used} >= {at.BUDGET_NEARLY_SPENT:g}"),
        "A participant has nearly used up its rate-limit budget.",
        "{{ $labels.name }}: one participant has used "
        "{{ $value | humanizePercentage }} of the messages that it may send in an "
        "epoch.",
        dashboard=CAPACITY,
    )
    soonest = earliest("sds_plan_limit_earliest_timestamp_seconds", "limit")
    seconds = at.LIMIT_WITHIN.total_seconds()
    yield _alert(
        "SdsChannelLimitForecast",
        Severity.WARNING,
        shown(f"clamp_min({soonest} - time(), 0) < {seconds:g}"),
        "A channel may reach a limit within seven days.",
        "{{ $labels.name }}: the channel reaches its first limit in "
        "{{ $value | humanizeDuration }} at the earliest (lower bound of the "
        "forecast).",
        dashboard=CAPACITY,
    )
    collisions = growth(
        "sds_message_id_collisions_total", at.COLLISION_WINDOW, pace, may_fall=True
    )
    yield _alert(
        "SdsMessageIdCollision",
        Severity.WARNING,
        shown(f"{collisions} > 0"),
        "Different messages have the same id.",
        '{{ $labels.name }}: {{ printf "%.0f" $value }} frame(s) in the last '
        f"{LIFE(at.COLLISION_WINDOW)} had a known message id but another sender or "
        "Lamport timestamp.",
        dashboard=CHANNEL,
    )
    evicted = growth(
        "sds_remembered_evicted_total", at.EVICTION_WINDOW, pace, may_fall=True
    )
    yield _alert(
        "SdsMemoryEvicted",
        Severity.WARNING,
        shown(f"{evicted} > 0"),
        "The monitor evicted entries of a channel early, because a memory limit was "
        "reached.",
        '{{ $labels.name }}: the monitor evicted {{ printf "%.0f" $value }} entries '
        f"from memory in the last {LIFE(at.EVICTION_WINDOW)}. Figures of this channel "
        "may be too low.",
        dashboard=CAPACITY,
    )


def _share(counter: str, matcher: str, window: str, share: float, least: int) -> str:
    """Return the share of a counter's events whose labels match `matcher`.

    The expression has no result if the share is at most `share`, or if fewer than
    `least` events match.
    """
    label = matcher.partition("=")[0]
    some = summed(f"increase({counter}{{{matcher}}}[{window}])", label)
    every = summed(f"increase({counter}[{window}])", label)
    return f"{some}\n/ {every}\n> {share:g}\nand {some} >= {least}"
