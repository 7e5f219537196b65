"""Recording rules that count deliveries and acknowledgements for the SLOs.

The rules count in slices of five minutes, and add the slices up for longer windows. If
a slice has excused failures, the slice counts at most one failure for each unexcused
finding. Thus, traffic that the taps missed does not look like loss. A short capture gap
affects only its own slices, although the longest window of an alert is three days.

Retracted losses are subtracted from the failures of a window. A retraction does not
show whether its loss was excused. Excused losses are not failures, so as many
retractions as excused losses are not subtracted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from dashboards.rules.pace import LIFE, Pace
from dashboards.rules.promql import (
    ALL_GROUPS_LABELLED,
    ALL_LABELLED,
    all_blind,
    latest,
    most_findings,
    summed,
    unmuted_blind,
)
from dashboards.thresholds import (
    BURN_RATES,
    RETRACTED_WITHIN,
    SLICE,
    SLICE_INTERVAL,
)

BLIND = "job:sds_views_blind:sum"
"""Number of blind channels and groups that are not muted."""

GROUP_BLIND = "channel:mvds_group_blind:max"
"""This series is 1 while a group of MVDS is blind, else 0. The series with the channel
label `other` is 1 while any group is blind, with or without a label of its own."""

NET_LOSSES = "channel:sds_dependency_losses:net"
"""Number of dependencies that were found lost, minus the losses retracted later."""


@dataclass(frozen=True, slots=True)
class Indicator:
    """The events that an SLO counts, and which of these events count as failures.

    `ended` and `failed` are parts of the names of series. `kind` is the kind of the
    findings that count as failures. `retracted` is the counter of retracted failures;
    None if failures are never retracted.
    """

    objective: str
    ended: str
    failed: str
    kind: str
    retracted: str | None = None

    @property
    def detected(self) -> str:
        """Name of the series that counts failures in a slice, even excused failures."""
        return f"channel:{self.failed}_found:increase{LIFE(SLICE)}"

    @property
    def excused(self) -> str:
        """Name of the series that counts excused failures in a slice."""
        return f"channel:{self.failed}_excused:increase{LIFE(SLICE)}"

    @property
    def taken_back(self) -> str:
        """Name of the series that counts retractions in a slice."""
        return f"channel:{self.failed}_retracted:increase{LIFE(SLICE)}"

    def ratio(self, window: timedelta) -> str:
        """Return the name of the series with the share of failures in a window."""
        return f"channel:{self.failed}:ratio_rate{LIFE(window)}"

    def events(self, window: timedelta) -> str:
        """Return the name of the series with the number of events in a window."""
        return f"channel:{self.ended}:increase{LIFE(window)}"

    def failures(self, window: timedelta) -> str:
        """Return the name of the series with the number of failures in a window.

        In the series of a slice, retracted failures count too.
        """
        return f"channel:{self.failed}:increase{LIFE(window)}"


DELIVERY = Indicator(
    "delivery",
    "sds_deliveries_ended",
    "sds_deliveries_failed",
    "undelivered",
    "sds_delivery_losses_retracted_total",
)
ACKNOWLEDGEMENT = Indicator(
    "acknowledgement",
    "sds_messages_judged",
    "sds_messages_unacknowledged",
    "unacknowledged",
)

WINDOWS = sorted({w for burn in BURN_RATES for w in (burn.long, burn.short)} - {SLICE})
"""The windows in `BURN_RATES`, except `SLICE`; the shortest window comes first."""


def recording_file(pace: Pace) -> dict[str, Any]:
    """Return the file of recording rules."""
    # At startup, the monitor exports `sds_monitor_dropped_label_channels` earlier than
    # `sds_channels`. The first rule has no result until both metrics exist. The same
    # holds for groups.
    channels = _all_labelled("sds_monitor_dropped_label_channels", "sds_channels")
    groups = _all_labelled("sds_monitor_dropped_label_groups", "mvds_groups")
    blind = latest('mvds_group_verdict{verdict="blind"}', "verdict")
    unmuted, unmuted_groups = unmuted_blind(), unmuted_blind("mvds_group")
    any_blind = f"{all_blind('mvds_group')} > bool 0"
    other = f'label_replace({any_blind}, "channel", "other", "", "")'
    lost = latest('sds_dependency_gaps_closed_total{outcome="lost"}', "outcome")
    retracted = latest("sds_dependency_losses_retracted_total")
    rules = [
        _rule(ALL_LABELLED, channels),
        _rule(ALL_GROUPS_LABELLED, groups),
        # A monitor of version 0.15 or earlier exports no figures of groups.
        _rule(BLIND, f"{unmuted}\n+ ({unmuted_groups} or 0 * {unmuted})"),
        _rule(GROUP_BLIND, f"{blind}\nor\n{other}"),
        _rule(NET_LOSSES, f"{lost}\n- {retracted}"),
    ]
    rules += _slices(DELIVERY, *_deliveries(pace(SLICE)), pace)
    rules += _slices(ACKNOWLEDGEMENT, *_acknowledgements(pace(SLICE)), pace)
    for indicator in (DELIVERY, ACKNOWLEDGEMENT):
        for window in WINDOWS:
            rules += _sums(indicator, window, pace)
        for window in (SLICE, *WINDOWS):
            failures, events = indicator.failures(window), indicator.events(window)
            rules.append(_rule(indicator.ratio(window), f"{failures} / ({events} > 0)"))
    group = {"name": "sds-recording", "interval": pace(SLICE_INTERVAL), "rules": rules}
    return {"groups": [group]}


def _rule(name: str, expression: str) -> dict[str, str]:
    return {"record": name, "expr": expression}


def _all_labelled(unlabelled: str, views: str) -> str:
    return f"{latest(unlabelled)} == bool 0\nand {latest(views, 'verdict')}"


def _deliveries(window: str) -> tuple[str, str]:
    ended = summed(f"increase(sds_deliveries_total[{window}])", "outcome")
    lost = summed(
        f'increase(sds_deliveries_total{{outcome="lost"}}[{window}])', "outcome"
    )
    return ended, lost


def _acknowledgements(window: str) -> tuple[str, str]:
    in_time = summed(f"increase(sds_messages_acknowledged_in_time_total[{window}])")
    missing = summed(f"increase(sds_messages_unacknowledged_total[{window}])")
    return f"{in_time}\n+ {missing}", missing


def _slices(
    indicator: Indicator, ended: str, failed: str, pace: Pace
) -> list[dict[str, str]]:
    window = pace(SLICE)
    detected, failures = indicator.detected, indicator.failures(SLICE)
    holes = f"{most_findings('excused', indicator.kind, window)} > 0"
    # The monitor counts findings over the window of its verdict, which is longer than a
    # slice. Thus, `most` may exceed the number of failures in the slice.
    most = most_findings("unexcused", indicator.kind, window)
    # Later rules read the series that earlier rules record.
    rules = [
        _rule(detected, failed),
        _rule(
            failures,
            f"({detected} unless {holes})\n"
            f"or ({most} < {detected})\n"
            f"or ({detected} and {holes})",
        ),
        _rule(indicator.excused, f"{detected} - {failures}"),
        _rule(indicator.events(SLICE), f"({ended})\n- {indicator.excused}"),
    ]
    if indicator.retracted is not None:
        retracted = summed(f"increase({indicator.retracted}[{window}])")
        rules.append(_rule(indicator.taken_back, retracted))
    return rules


def _sums(indicator: Indicator, window: timedelta, pace: Pace) -> list[dict[str, str]]:
    # Slices overlap: each event is in `SLICE / SLICE_INTERVAL` slices, so the sum is
    # divided by this number.
    each = SLICE_INTERVAL / SLICE

    def sum_of(part: str, since: timedelta = window) -> str:
        return f"{each:g} * sum_over_time({part}[{pace(since)}])"

    failed = sum_of(indicator.failures(SLICE))
    if indicator.retracted is not None:
        retracted = sum_of(indicator.taken_back)
        # The losses of these retractions may be earlier than the window.
        excused = sum_of(indicator.excused, window + RETRACTED_WITHIN)
        failed += f"\n- clamp_min({retracted} - {excused}, 0)"
    return [
        _rule(indicator.events(window), sum_of(indicator.events(SLICE))),
        _rule(indicator.failures(window), failed),
    ]
