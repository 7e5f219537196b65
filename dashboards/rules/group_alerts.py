"""Alerts on groups of MVDS."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from dashboards import GROUPS
from dashboards import thresholds as at
from dashboards.rules.alert import Alert, Severity, Subject, graded
from dashboards.rules.pace import LIFE, Pace
from dashboards.rules.promql import (
    ALL_GROUPS_LABELLED,
    growth,
    shown,
    summed,
    unmuted_blind,
)
from dashboards.rules.recording import GROUP_BLIND

_alert = partial(Alert, subject=Subject.GROUP, dashboard=GROUPS)

_VIEWS = "mvds_group"
"""Prefix of the metrics about the settings of groups."""

_shown = partial(shown, views=_VIEWS)
_growth = partial(growth, may_fall=True, all_labelled=ALL_GROUPS_LABELLED)


def group_alerts(pace: Pace) -> Iterator[Alert]:
    """Yield the alerts. Alerts on problems that taps can cause exclude blind groups."""
    for severity, share in graded(
        at.UNACKNOWLEDGED_SHARE, at.MOSTLY_UNACKNOWLEDGED_SHARE
    ):
        yield _alert(
            "MvdsMessagesUnacknowledged",
            severity,
            _shown(
                _seeing(_unacknowledged(share, pace), at.UNACKNOWLEDGED_WINDOW, pace)
            ),
            "Receivers send payloads, but do not acknowledge MVDS messages.",
            "Group {{ $labels.name }}: in the last "
            f"{LIFE(at.UNACKNOWLEDGED_WINDOW)}, "
            "{{ $value | humanizePercentage }} of the pairs of a message and a "
            "receiver were not acknowledged by the deadline. Pairs whose receiver sent "
            "nothing do not count.",
        )
    unanswered = _growth("mvds_unanswered_requests_total", at.UNANSWERED_WINDOW, pace)
    yield _alert(
        "MvdsRequestsUnanswered",
        Severity.WARNING,
        _shown(
            _seeing(
                f"{unanswered} >= {at.UNANSWERED_REQUESTS}", at.UNANSWERED_WINDOW, pace
            )
        ),
        "Peers request offered messages, but do not receive these messages.",
        'Group {{ $labels.name }}: {{ printf "%.0f" $value }} request(s) brought '
        f"no message by the deadline in the last {LIFE(at.UNANSWERED_WINDOW)}.",
    )
    for severity, holds in graded(at.BLIND_FOR, at.BLIND_STILL):
        yield Alert(
            "MvdsTapBlind",
            severity,
            f"{unmuted_blind(_VIEWS)} > 0",
            "The taps miss traffic of some groups, so the monitor cannot judge these "
            "groups.",
            '{{ printf "%.0f" $value }} group(s) are blind: their taps were silent or '
            "lost records, or no records arrive.",
            holds,
            subject=Subject.TAP,
            dashboard=GROUPS,
        )
    evicted = _growth("mvds_remembered_evicted_total", at.EVICTION_WINDOW, pace)
    yield _alert(
        "MvdsMemoryEvicted",
        Severity.WARNING,
        _shown(f"{evicted} > 0"),
        "The monitor evicted MVDS messages early, because a memory limit was reached.",
        'Group {{ $labels.name }}: the monitor evicted {{ printf "%.0f" $value }} '
        f"entries from memory in the last {LIFE(at.EVICTION_WINDOW)}. MVDS figures "
        "may be too low.",
    )


def _unacknowledged(share: float, pace: Pace) -> str:
    window = pace(at.UNACKNOWLEDGED_WINDOW)

    def ended(metric: str) -> str:
        return summed(f"increase(mvds_{metric}_total[{window}])")

    # `failed` may be negative, because it subtracts late acknowledgements of messages
    # whose deadline was before the window.
    failed = f"({ended('unacknowledged')} - {ended('unacknowledged_resolved')})"
    judged = f"({ended('unacknowledged')} + {ended('acknowledged_in_time')})"
    return (
        f"{failed}\n/ {judged}\n> {share:g}\nand {failed} >= {at.LEAST_UNACKNOWLEDGED}"
    )


def _seeing(expression: str, window: timedelta, pace: Pace) -> str:
    """Drop the series of groups that were blind at any time in the window."""
    return f"({expression})\nunless max_over_time({GROUP_BLIND}[{pace(window)}]) > 0"
