"""`/metrics`: Prometheus text or OpenMetrics, whichever the request prefers."""

from __future__ import annotations

import asyncio
import gc
import gzip
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from prometheus_client import CollectorRegistry
from starlette.requests import Request
from starlette.responses import Response

from connectors.prometheus.exposition import Named, Registry, encoder
from connectors.web.answers import HEADERS
from connectors.web.operations import Operation

_COMPRESSION = 3
"""Compression level of zlib. The highest level takes ten times as long, but its result
is only a seventh smaller."""

_WEIGHT_0 = re.compile(r"\s*q\s*=\s*0(\.0*)?\s*")


@dataclass(frozen=True, kw_only=True)
class MetricsQuery:
    """Selects metrics.

    Attributes:
        names: Name of the metric to return, or name of one of the metric's series. The
            parameter may be repeated. By default, all metrics are returned.
    """

    names: list[str] = field(default_factory=list, metadata={"name": "name[]"})


class _Wanted(NamedTuple):
    accept: str
    names: tuple[str, ...]
    is_compressed: bool


class _Made(NamedTuple):
    wanted: _Wanted
    # Monotonic seconds.
    begun_s: float
    body: bytes
    content_type: str


class Metrics:
    """Answers scrapes one after the other, in a separate thread.

    With thousands of channels, it takes a large part of a second to create an answer.
    Meanwhile, the event loop answers other requests. If several scrapes with the same
    options arrive while the thread works, they share the answer that is created next.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._thread = ThreadPoolExecutor(1, "metrics")
        self._newest: _Made | None = None

    @property
    def route(self) -> Operation:
        """The route that answers scrapes."""
        return Operation("/metrics", self.answer, form=MetricsQuery)

    async def answer(self, request: Request) -> Response:
        """Return metrics as Prometheus text.

        If the request's header `Accept` names OpenMetrics, return OpenMetrics instead.
        """
        wanted = _Wanted(
            ",".join(request.headers.getlist("accept")),
            tuple(request.query_params.getlist("name[]")),
            _accepts_gzip(",".join(request.headers.getlist("accept-encoding"))),
        )
        made = await asyncio.get_running_loop().run_in_executor(
            self._thread, self._answer, wanted, time.monotonic()
        )
        headers = {**HEADERS, "Content-Type": made.content_type}
        if wanted.is_compressed:
            headers["Content-Encoding"] = "gzip"
        return Response(made.body, headers=headers)

    def _answer(self, wanted: _Wanted, since_s: float) -> _Made:
        """Return an answer that was begun at `since_s` or later, monotonic seconds."""
        newest = self._newest
        if newest is None or newest.wanted != wanted or newest.begun_s < since_s:
            newest = self._newest = self._made(wanted)
        return newest

    def _made(self, wanted: _Wanted) -> _Made:
        begun_s = time.monotonic()
        encode, content_type = encoder(wanted.accept)
        registry: Registry = self._registry
        if wanted.names:
            registry = Named(registry, frozenset(wanted.names))
        with _without_collections():
            body = encode(registry)
        if wanted.is_compressed:
            body = gzip.compress(body, _COMPRESSION)
        return _Made(wanted, begun_s, body, content_type)


def _accepts_gzip(accepted: str) -> bool:
    """Whether the header `Accept-Encoding` names gzip with a weight above 0."""
    # prometheus_client ignores the weight, which is 0 if a client refuses a coding
    # (RFC 9110, 12.4.2).
    codings = (one.partition(";") for one in accepted.lower().split(","))
    return any(
        coding.strip() == "gzip" and not _WEIGHT_0.fullmatch(weight)
        for coding, _, weight in codings
    )


@contextmanager
def _without_collections() -> Iterator[None]:
    # The samples of an answer have no reference cycles. The garbage collector would
    # search all channels in vain, and take as long as the answer itself.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
