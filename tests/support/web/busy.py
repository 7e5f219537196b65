"""A stage on which every view has something of everything to show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from connectors.history.schema import NumberedMinute, minute_row
from connectors.prometheus.firing import FiringAlert, FiringAlerts
from sds_core.observer.channel_table import ChannelEntry, ChannelTable
from sds_core.observer.histogram import Histogram
from sds_core.observer.incidents import IncidentKind
from sds_core.observer.sds.participant_figures import (
    ParticipantFigures,
    ParticipantTable,
)
from sds_core.observer.sds.totals import BloomGauge, ChannelTotals
from sds_core.observer.shown_verdicts import WORST_FIRST, ShownVerdict
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from tests.support.planning.made_plan import plan
from tests.support.web.reading import lost

MakeSnapshot = Callable[..., Snapshot]
MakeTotals = Callable[..., ChannelTotals]

HOSTILE = "<img src=x onerror=alert(1)>"


ESCAPED = f"{HOSTILE}'\n\u202e"


@pytest.fixture
def busy(
    stage: Any,
    snapshot: MakeSnapshot,
    totals: MakeTotals,
    histogram: Callable[..., Histogram],
) -> Any:
    """A stage on which every view has something of everything to show."""
    minute_ms = snapshot().clock_ms // 60_000 * 60_000
    channels = {
        "/waku/1": totals(
            Verdict.FAILING,
            verdict_reason="lost",
            first_event_ms=minute_ms - 1_200_000,
            unacknowledged=3,
            acknowledged_in_time=9,
            gaps_lost=2,
            messages=123_456,
            definite_latency=histogram(900_000),
            observers=["t1"],
            participant_table=msgspec.msgpack.encode(
                ParticipantTable(
                    [
                        ParticipantFigures(
                            "participant-003",
                            minute_ms,
                            *(28, minute_ms - 900_000, 28, 171, 28),
                            BloomGauge(100, 1_000, 2),
                        ),
                        ParticipantFigures(HOSTILE * 9, minute_ms - 3_000),
                    ],
                    others=7,
                )
            ),
        ),
        HOSTILE * 9: totals(Verdict.BLIND),
        "muted": totals(Verdict.FAILING),
    } | {verdict.value: totals(verdict) for verdict in Verdict}
    table = ChannelTable(
        [ChannelEntry("/waku/1", name="Town"), ChannelEntry("muted", mute_until_ms=1)]
    )
    now_ms = minute_ms + 10_000
    taps = {
        "t1": TapTotals(now_ms),
        HOSTILE: TapTotals(now_ms - 99_000, 7, now_ms, [(now_ms - 9_000, now_ms)]),
    }
    stage.snapshot = replace(
        snapshot(channels), taps=taps, undecodable={"protobuf_error": 2}
    ).with_table(table, 0)
    stage.plans = {"sds": plan(["/waku/1", HOSTILE * 9, ESCAPED], ["muted"])}
    stage.minutes = [
        minute_row(
            NumberedMinute(
                n,
                "/waku/1",
                minute_ms - 60_000 * (2 - n),
                totals(
                    messages=5 * n,
                    gaps_lost=n,
                    repair_answered=2 * n,
                    acknowledged_in_time=9 * n,
                    definite_latency=histogram(*[4_000] * n),
                ),
            )
        )
        for n in (1, 2)
    ]
    stage.shown_until_ms = now_ms
    stage.shown = {
        name: [
            ShownVerdict(minute_ms - ago * 60_000, shown, "ok")
            for ago, shown in zip(range(60, 0, -8), WORST_FIRST, strict=False)
        ]
        for name in channels
    }
    stage.incidents = [
        lost("/waku/1"),
        lost(
            "/waku/1",
            kind=IncidentKind.UNDELIVERED,
            message_id="m2",
            lacking={"participant-003": minute_ms - 900_000, HOSTILE * 9: minute_ms},
        ),
        lost("/waku/1", message_id=ESCAPED, sender=HOSTILE, ended_ms=1_786_276_400_000),
    ]
    stage.firing = FiringAlerts(
        [
            FiringAlert("SdsLoss", "critical", "/waku/1", "Messages are lost.", ""),
            FiringAlert(HOSTILE * 9, "warning", HOSTILE * 9, "", ""),
        ],
        asked=True,
    )
    for alert in ("SdsMessagesLost", "SdsDeliveryBudgetBurn"):
        (stage.runbooks / f"{alert}.md").write_text(f"# {alert}\n\n## What to do\n")
    (stage.runbooks / "SdsLoss.md").write_text(
        "# SdsLoss\n\n**Severity:** critical, warning. Messages are lost.\n\n## Do\n\n"
        "| a | b |\n|---|---|\n| 1 | `x` |\n\n"
        f"```\nsds-monitor {'x' * 200}\n```\n"
    )
    return stage
