"""Alerts on problems of a channel, except those on its objectives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from dashboards import CAPACITY, CHANNEL, REPAIR
from dashboards import thresholds as at
from dashboards.rules.alert import Alert, Severity, Subject
from dashboards.rules.pace import LIFE, Pace
from dashboards.rules.promql import (
    growth,
    latest,
    named,
    summed,
    unless_excused,
    unless_muted,
)
from dashboards.rules.recording import NET_LOSSES


def channel_alerts(pace: Pace) -> Iterator[Alert]:
    """Yield the alerts; what taps may have caused sets off none."""
    # Net losses fall when a loss is retracted, even one from long ago.
    lost = growth(NET_LOSSES, at.LOSS_WINDOW, pace, may_fall=True)
    for severity, least in (
        (Severity.WARNING, at.LOST_MESSAGES),
        (Severity.CRITICAL, at.MANY_LOST_MESSAGES),
    ):
        yield _alert(
            "SdsMessagesLost",
            severity,
            unless_excused(f"{lost} >= {least}", "lost", least, pace(at.LOSS_WINDOW)),
            "Messages that others refer to reached only their senders.",
            '{{ $labels.name }}: {{ printf "%.0f" $value }} message(s) found lost to '
            f"everybody in the last {LIFE(at.LOSS_WINDOW)}.",
            CHANNEL,
        )
    hour = pace(at.REPAIR_WINDOW)
    yield _alert(
        "SdsRepairExpiring",
        Severity.WARNING,
        unless_excused(
            _share(
                "sds_repair_episodes_total",
                'outcome="expired"',
                hour,
                at.EXPIRED_SHARE,
                at.LEAST_EXPIRED,
            ),
            "repair_expired",
            at.LEAST_EXPIRED,
            hour,
        ),
        "Repair requests go unanswered.",
        "{{ $labels.name }}: {{ $value | humanizePercentage }} of the repair episodes "
        f"that ended in the last {LIFE(at.REPAIR_WINDOW)} expired without an answer.",
        REPAIR,
    )
    yield _alert(
        "SdsRedundantRepairStorm",
        Severity.WARNING,
        _share(
            "sds_repair_responses_total",
            'redundant="true"',
            hour,
            at.REDUNDANT_SHARE,
            at.LEAST_REDUNDANT,
        ),
        "Many participants answer the same repair requests.",
        "{{ $labels.name }}: {{ $value | humanizePercentage }} of the responses to "
        f"repair requests in the last {LIFE(at.REPAIR_WINDOW)} were redundant.",
        REPAIR,
    )
    yield _alert(
        "SdsBloomNearSaturation",
        Severity.WARNING,
        f"{latest('sds_bloom_false_positive_ratio')} >= {at.NEAR_SATURATION_RATIO:g}",
        "A bloom filter is nearly too full to show what its owner has.",
        "{{ $labels.name }}: the fullest filter has a false-positive rate of "
        f"{{{{ $value | humanizePercentage }}}}; above {at.SATURATED_RATIO:.0%} it "
        "counts as saturated.",
        CAPACITY,
        at.NEAR_SATURATION_FOR,
    )
    yield _alert(
        "SdsRateLimitBudgetNearlySpent",
        Severity.WARNING,
        f"{latest('sds_epoch_budget_used_ratio', 'epoch')} >= "
        f"{at.BUDGET_NEARLY_SPENT:g}",
        "A participant has nearly used up its rate-limit budget.",
        "{{ $labels.name }}: one participant has used "
        "{{ $value | humanizePercentage }} of the messages that it may send in an "
        "epoch.",
        CAPACITY,
    )
    yield _alert(
        "SdsMessageIdCollision",
        Severity.WARNING,
        growth("sds_message_id_collisions_total", at.COLLISION_WINDOW, pace) + " > 0",
        "Different messages have the same id.",
        '{{ $labels.name }}: {{ printf "%.0f" $value }} frame(s) in the last '
        f"{LIFE(at.COLLISION_WINDOW)} with a known message id and another sender or "
        "Lamport timestamp.",
        CHANNEL,
    )
    yield _alert(
        "SdsMemoryEvicted",
        Severity.WARNING,
        growth("sds_remembered_evicted_total", at.EVICTION_WINDOW, pace) + " > 0",
        "The monitor forgot entries of a channel too early.",
        '{{ $labels.name }}: {{ printf "%.0f" $value }} entries pushed out of memory '
        f"in the last {LIFE(at.EVICTION_WINDOW)}; figures of this channel may be too "
        "low.",
        CAPACITY,
    )


def _alert(
    name: str,
    severity: Severity,
    expression: str,
    summary: str,
    description: str,
    dashboard: str,
    holds: timedelta = timedelta(),
) -> Alert:
    return Alert(
        name,
        severity,
        named(unless_muted(expression)),
        summary,
        description,
        holds,
        subject=Subject.CHANNEL,
        dashboard=dashboard,
    )


def _share(counter: str, matcher: str, window: str, share: float, least: int) -> str:
    """Return the share of some events of a counter, if share and number are large."""
    label = matcher.partition("=")[0]
    some = summed(f"increase({counter}{{{matcher}}}[{window}])", label)
    every = summed(f"increase({counter}[{window}])", label)
    return f"{some}\n/ {every}\n> {share:g}\nand {some} >= {least}"
