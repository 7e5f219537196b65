"""Three incidents for tests of ``sds-monitor incidents``, and the command itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import CliRunner, Result

from sds_core.observer.incidents import ChannelIncident, Incident, IncidentKind
from streaming.cli.incidents import command

LONG_ID = "0x" + "0123456789abcdef" * 4
HASH = bytes(range(32))

LOST = ChannelIncident(
    "town",
    Incident(
        IncidentKind.LOST,
        LONG_ID,
        "alice",
        since_ms=1_786_276_990_123,
        found_ms=1_786_277_290_123,
        lacking={"bob": 1_786_276_995_001, "carol": 1_786_276_996_000},
        named_by=["alice"],
        hint=b"\x02\xff",
    ),
    tap_hole=True,
)
DELIVERED_LATE = ChannelIncident(
    "village",
    Incident(
        IncidentKind.UNDELIVERED,
        "m2",
        "bob",
        since_ms=1_786_276_900_000,
        found_ms=1_786_277_200_000,
        ended_ms=1_786_277_600_000,
        waku_hash=HASH,
    ),
    tap_hole=False,
)
NOBODY_SPOKE = ChannelIncident(
    "town",
    Incident(
        IncidentKind.UNACKNOWLEDGED, "m3", "", 1_786_270_000_000, 1_786_270_120_000
    ),
    tap_hole=False,
)
ALL = [LOST, DELIVERED_LATE, NOBODY_SPOKE]
"""Found last first."""

MakeReport = Callable[..., Path]


def invoke(*arguments: str, **environment: str) -> Result:
    """The command in this process; what it prints is no terminal's."""
    return CliRunner().invoke(command, arguments, env=environment)
