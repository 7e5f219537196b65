"""Requests to the page and the API.

An input is the target of a GET request, and on further lines its headers.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from random import Random
from typing import Any
from urllib.parse import quote, unquote

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette

from connectors.prometheus.collector import SnapshotCollector
from connectors.web.app import create_app
from connectors.web.sources import Sources
from sds_core.observer.incidents import ChannelIncident, Incident, IncidentKind
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.shown_verdicts import ShownVerdict
from sds_core.observer.snapshot import JobFigures
from sds_core.observer.tap_view import TapTotals
from sds_core.observer.verdict import Verdict
from tests.support.frames import START_MS
from tests.support.fuzz.mutation import NUMBERS, TEXTS, changed_bytes
from tests.support.fuzz.target import Target
from tests.support.snapshots import snapshot_of
from tests.support.web.stored import stored

_CHANNELS = ("channel", "a/b?c#d", "<script>", "x" * 5_000, "\x00\u202e", "..")
_PATHS = (
    "/", "/channel", "/incidents", "/taps", "/monitor", "/runbooks",
    "/runbooks/SdsMessagesLost", "/metrics", "/api/v1/channels",
    "/api/v1/channels/channel", "/api/v1/incidents", "/api/v1/taps", "/api/v1/minutes",
    "/api/v1/verdicts", "/api/v1/participants", "/api/v1/views/sds",
    "/api/v1/views/sds/verdicts", "/views/sds", "/views/sds/one",
    "/views/sds/incidents",
    "/healthz", "/readyz", "/static/base.css",
)  # fmt: skip
_PARAMETERS = (
    "id", "key", "channel", "hours", "limit", "kind", "since", "standing", "q", "page",
    "offset", "after", "sort", "find", "window", "from", "to",
)  # fmt: skip
_VALUES = (
    *_CHANNELS, *TEXTS, *map(str, NUMBERS), "-1", "true", "lost", "undelivered", "3",
    "24", "1e3", "0x10", "٣", "all", "-messages",
)  # fmt: skip
_HEADERS = ("accept", "accept-encoding", "host", "cookie", "range", "if-none-match")
_TARGET = re.compile(rb"/[\x21-\x7e]*")


@cache
def _app() -> Starlette:
    totals = ChannelTotals(verdict=Verdict.OK, verdict_reason="ok", observers=["tap"])
    snapshot = snapshot_of(
        primed=True,
        clock_ms=START_MS,
        channels=dict.fromkeys(_CHANNELS, totals),
        taps={"tap": TapTotals(last_seen_ms=START_MS)},
        labels=_CHANNELS,
        job=JobFigures(running=True, version="1.2.3"),
    )
    incidents = [
        ChannelIncident(
            name, Incident(IncidentKind.LOST, name, "a", START_MS, START_MS), True
        )
        for name in _CHANNELS
    ]
    registry = CollectorRegistry()
    registry.register(SnapshotCollector(lambda: snapshot))
    sources = Sources(
        lambda: snapshot,
        stored(
            find_incidents=lambda query: incidents[: query.limit],
            find_verdicts=lambda channels, since_ms, until_ms: {
                name: [ShownVerdict(START_MS // 60_000 * 60_000, "ok", "ok")]
                for name in channels
            },
            verdicts_until_ms=lambda: START_MS,
        ),
        files("dashboards") / "runbooks",
    )
    return create_app(sources, registry)


def _genuine() -> list[bytes]:
    # The only views that need to know which channel.
    about = (
        "/channel",
        "/api/v1/minutes",
        "/api/v1/verdicts",
        "/api/v1/participants",
        "/api/v1/views/sds/verdicts",
        "/views/sds/one",
    )
    targets = [path for path in _PATHS if path not in about]
    return [
        *(path.encode() for path in targets),
        b"/channel?id=channel&hours=1",
        b"/api/v1/minutes?channel=channel&hours=3",
        b"/api/v1/verdicts?channel=channel&from=1",
        b"/api/v1/participants?channel=channel",
        b"/api/v1/views/sds/verdicts?id=channel",
        b"/views/sds/one?id=channel",
        b"/api/v1/incidents?limit=5&standing=true\naccept: application/json",
    ]


def _changed(random: Random, value: bytes, other: bytes) -> bytes:
    """Another path or query; one in five with changed bytes."""
    if random.random() < 0.2:
        return changed_bytes(random, value, other)
    path = random.choice(_PATHS)
    if random.random() < 0.3:
        path += "/" + quote(random.choice(_VALUES), safe="")
    given = [
        f"{random.choice(_PARAMETERS)}={quote(random.choice(_VALUES), safe='')}"
        for _ in range(random.randrange(4))
    ]
    lines = [path + "?" * bool(given) + "&".join(given)]
    lines += [
        f"{random.choice(_HEADERS)}: {random.choice(_VALUES)}"
        for _ in range(random.randrange(3))
    ]
    return "\n".join(lines).encode()


def _check(data: bytes) -> bool:
    """An answer without an error of the server, that no other page can read."""
    target, *lines = data.split(b"\n")
    if not _TARGET.fullmatch(target):
        # The server refuses it.
        return False
    raw_path, _, query = target.partition(b"?")
    answered: list[dict[str, Any]] = []

    received = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> dict[str, Any]:
        for message in received:
            return message
        # The client stays.
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        answered.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        # As uvicorn does.
        "path": unquote(raw_path.decode("latin-1")),
        "raw_path": raw_path,
        "query_string": query,
        "root_path": "",
        "headers": list(_headers(lines)),
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 9_108),
    }
    asyncio.run(_app()(scope, receive, send))  # type: ignore[arg-type]
    status = int(answered[0]["status"])
    assert status < 500, status
    return status < 400


def _headers(lines: list[bytes]) -> Iterator[tuple[bytes, bytes]]:
    for line in lines:
        name, _, value = line.partition(b":")
        yield name.strip().lower(), value.strip()


TARGETS = (
    # Its first request loads templates.
    Target("http", _genuine, _changed, _check, 1_000, fixed_memory=20_000_000),
)
