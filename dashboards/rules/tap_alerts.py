"""Alerts on taps."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from dashboards import FLEET, MONITOR
from dashboards import thresholds as at
from dashboards.rules.alert import Alert, Severity, Subject, graded
from dashboards.rules.pace import LIFE, Pace
from dashboards.rules.promql import growth, latest, unmuted_blind
from dashboards.rules.recording import BLIND

_alert = partial(Alert, subject=Subject.TAP, dashboard=MONITOR)

_IF_OTHER = '{{ if eq $labels.observer "other" }}%s{{ else }}%s{{ end }}'
"""Template with two texts: one for all taps without a label, and one for a tap."""


def tap_alerts(pace: Pace) -> Iterator[Alert]:
    """Yield the alerts on blind channels and on taps."""
    for severity, holds in graded(at.BLIND_FOR, at.BLIND_STILL):
        yield _alert(
            "SdsTapBlind",
            severity,
            f"{unmuted_blind()} > 0",
            "The taps miss traffic of some channels, so the monitor cannot judge these "
            "channels.",
            '{{ printf "%.0f" $value }} channel(s) are blind: their taps were silent '
            "or lost records, or no records arrive.",
            holds,
            dashboard=FLEET,
        )
    last_seen = "sds_tap_last_seen_timestamp_seconds"
    newest = latest(last_seen, "observer")
    # `last_over_time` also finds taps that the monitor has forgotten.
    each = f"last_over_time({last_seen}[{pace(at.TAP_SEEN_WITHIN)}])"
    yield _alert(
        "SdsTapSilent",
        Severity.WARNING,
        f"{newest}\n- ignoring (observer) group_right {latest(each)}\n"
        f"> {at.TAP_SILENT_SECONDS:g}",
        "A tap is silent.",
        "In event time, tap {{ $labels.observer }} lags "
        "{{ $value | humanizeDuration }} behind the newest record of all taps.",
        at.TAP_SILENT_FOR,
    )
    yield _alert(
        "SdsTapSilent",
        Severity.CRITICAL,
        f"{latest(each, 'observer')}\n"
        f"unless {newest}\n"
        # If no monitor exports figures, it is unknown whether taps are silent, so the
        # alert does not fire.
        f"and {latest('sds_channels', 'verdict')}",
        "A tap is silent.",
        "All taps are silent: the newest record is from "
        "{{ $value | humanizeTimestamp }}.",
        at.TAP_SILENT_FOR,
    )
    yield _alert(
        "SdsTapClockSkewed",
        Severity.WARNING,
        f"{latest('sds_tap_clock_offset_seconds')} > {at.TAP_CLOCK_SECONDS:g}\n"
        f"or {latest('sds_tap_clock_offset_seconds')} < -{at.TAP_CLOCK_SECONDS:g}",
        "The clock of a tap is wrong.",
        "The clock of "
        + _IF_OTHER % ("a tap without a label", "tap {{ $labels.observer }}")
        + " is {{ $value | humanizeDuration }} ahead of Kafka's clock. A negative time "
        "means that the tap's clock is behind.",
        at.TAP_CLOCK_FOR,
    )
    window = pace(at.TAP_MISSING_WINDOW)
    missing = growth(
        "sds_tap_missing_records_total", at.TAP_MISSING_WINDOW, pace, may_fall=True
    )
    yield _alert(
        "SdsTapMissingRecords",
        Severity.WARNING,
        f"{missing} >= {at.TAP_MISSING_RECORDS}\n"
        # With only one tap, missing records make channels and groups blind. Then,
        # SdsTapBlind or MvdsTapBlind fires instead.
        f"unless ignoring (observer) max_over_time({BLIND}[{window}]) > 0",
        "One of several taps lost records.",
        _IF_OTHER
        % ("All taps without a label", "Tap {{ $labels.observer }}")
        + ': {{ printf "%.0f" $value }} sequence number(s) '
        f"missing in the last {LIFE(at.TAP_MISSING_WINDOW)}.",
    )
