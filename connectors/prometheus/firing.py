"""Reads from Prometheus which alerts fire."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import httpx
import msgspec

from connectors.http_client import get
from connectors.polling import Poll
from connectors.untrusted_json import UNREADABLE

POLL_S = 15.0
"""Time between two requests, seconds. More frequent requests would be useless, because
Prometheus evaluates its rules every 15 to 60 s."""

_TIMEOUT_S = 5.0

_OURS = ("Sds", "Mvds")

SEVERITIES = ("critical", "warning", "info")


class FiringAlert(NamedTuple):
    """One alert that fires.

    Attributes:
        name: Name of the alert and of its runbook.
        channel: Channel id; empty for an alert without a channel.
        since: When the alert became active, as Prometheus writes it (RFC 3339).
    """

    name: str
    severity: str
    channel: str
    summary: str
    since: str


class FiringAlerts(NamedTuple):
    """Alerts that fire.

    Attributes:
        alerts: The alerts, most severe first.
        asked: Whether a Prometheus is configured.
        problem: Why the alerts are unknown; empty if they are known.
    """

    alerts: Sequence[FiringAlert] = ()
    asked: bool = False
    problem: str = ""


class _Alert(msgspec.Struct):
    labels: dict[str, str]
    annotations: dict[str, str] = {}
    state: str = ""
    activeAt: str = ""


class _Data(msgspec.Struct):
    alerts: list[_Alert]


class _Answer(msgspec.Struct):
    data: _Data


def firing_of(body: bytes) -> list[FiringAlert]:
    """Find this project's firing alerts in an answer of ``/api/v1/alerts``.

    Returns the alerts, most severe first.

    Raises:
        msgspec.DecodeError: The text is not an answer of ``/api/v1/alerts``.
    """
    found = [
        FiringAlert(
            one.labels.get("alertname", ""),
            one.labels.get("severity", ""),
            one.labels.get("channel", ""),
            one.annotations.get("summary", ""),
            one.activeAt,
        )
        for one in msgspec.json.decode(body, type=_Answer).data.alerts
        if one.state == "firing" and one.labels.get("alertname", "").startswith(_OURS)
    ]
    return sorted(found, key=_gravity)


def _gravity(one: FiringAlert) -> tuple[int, FiringAlert]:
    known = one.severity in SEVERITIES
    return SEVERITIES.index(one.severity) if known else len(SEVERITIES), one


def ask(url: str) -> FiringAlerts:
    """Query a Prometheus once; after a failure, the result has a `problem`."""
    try:
        answer = get(f"{url.rstrip('/')}/api/v1/alerts", timeout=_TIMEOUT_S)
        answer.raise_for_status()
        return FiringAlerts(firing_of(answer.content), asked=True)
    except httpx.HTTPStatusError as error:
        problem = f"Prometheus answers with an error ({error.response.status_code})"
    except (httpx.HTTPError, httpx.InvalidURL):
        problem = "Prometheus does not answer"
    except UNREADABLE:
        problem = "what answers is not Prometheus"
    return FiringAlerts(asked=True, problem=problem)


class FiringPoll(Poll[FiringAlerts]):
    """Queries a Prometheus repeatedly while the block runs, if a URL is given."""

    def __init__(self, url: str | None, poll_s: float = POLL_S) -> None:
        request = None if url is None else partial(ask, url)
        problem = "" if url is None else "Prometheus has not answered yet"
        first = FiringAlerts(asked=url is not None, problem=problem)
        super().__init__(request, first, poll_s, "alerts")
