"""Alerts on taps."""

from __future__ import annotations

from collections.abc import Iterator

from dashboards import thresholds as at
from dashboards.links import FLEET, MONITOR
from dashboards.rules.alert import Alert, Severity, Subject
from dashboards.rules.pace import LIFE, Pace
from dashboards.rules.promql import blind_channels, growth, latest

_MUTED_UNTIL = "sds_channel_muted_until_timestamp_seconds"


def tap_alerts(pace: Pace) -> Iterator[Alert]:
    """One on blindness for all channels together, the others for each tap."""
    for severity, holds in (
        (Severity.WARNING, at.BLIND_FOR),
        (Severity.CRITICAL, at.BLIND_STILL),
    ):
        yield Alert(
            "SdsTapBlind",
            Subject.TAP,
            severity,
            _told_blind_channels(),
            "Nothing can be said of channels whose taps do not see them whole.",
            '{{ printf "%.0f" $value }} channel(s) are blind: their taps were silent, '
            "lost records, or nothing arrives at all.",
            FLEET,
            holds,
        )
    last_seen = "sds_tap_last_seen_timestamp_seconds"
    newest = latest(last_seen, "observer")
    yield Alert(
        "SdsTapSilent",
        Subject.TAP,
        Severity.WARNING,
        f"{newest}\n- ignoring (observer) group_right {latest(last_seen)}\n"
        f"> {at.TAP_SILENT_SECONDS:g}",
        "One of several taps has fallen silent.",
        "Tap {{ $labels.observer }} is {{ $value | humanizeDuration }} of event time "
        "behind the newest tap.",
        MONITOR,
        at.TAP_SILENT_FOR,
    )
    window = pace(at.TAP_MISSING_WINDOW)
    yield Alert(
        "SdsTapMissingRecords",
        Subject.TAP,
        Severity.WARNING,
        f"{growth('sds_tap_missing_records_total', window)} "
        f">= {at.TAP_MISSING_RECORDS}\n"
        # With one tap alone they blind its channels, of which is told already.
        f"unless ignoring (observer) {_blind_within(window)} > 0",
        "Records of one of several taps never came.",
        'Tap {{ $labels.observer }}: {{ printf "%.0f" $value }} number(s) of its '
        f"sequence missing in the last {LIFE(at.TAP_MISSING_WINDOW)}.",
        MONITOR,
    )


def _blind_within(window: str) -> str:
    return latest(
        f'max_over_time(sds_channels{{verdict="blind"}}[{window}])', "verdict"
    )


def _told_blind_channels() -> str:
    """How many there are, those left aside of which nobody is to be told."""
    blind = blind_channels()
    verdicts = latest('sds_channel_verdict{verdict="blind"}', "verdict")
    told = f"({verdicts} == 1 and {latest(_MUTED_UNTIL)} > time())"
    muted = f"sum without (channel) {told}"
    return f"{blind}\n- ({muted} or 0 * {blind})\n> 0"
