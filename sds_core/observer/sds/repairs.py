"""Repair requests, their episodes and responses (docs/figures.md, 7)."""

from __future__ import annotations

from itertools import islice

import msgspec

from sds_core.observer.deadlines import Deadlines, Due
from sds_core.observer.memory import oldest
from sds_core.observer.sds.participants import UNKNOWN
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import ObserverSettings
from sds_core.wire import Dialect

_REMEMBERED = 32
"""Participants and requests remembered for one id, at most: enough to check times."""


class Request(msgspec.Struct, array_like=True):
    """Repair requests for one message id. Stored in the state, by position.

    Attributes:
        first_ms: Event time of the first request of the newest episode, Unix ms.
        latest_ms: The channel's clock at the latest request, Unix ms.
        window_ms: Time after the latest request in which a response answers it.
        is_open: Whether the newest episode has no answer and has not expired.
        requesters: The first `_REMEMBERED` participants that requested it.
        requests_ms: Event times of its latest requests, at most `_REMEMBERED`.
    """

    first_ms: int
    latest_ms: int
    window_ms: int
    is_open: bool = True
    requesters: list[int] = []
    requests_ms: list[int] = []


class Repairs:
    """Follows repair episodes by message id."""

    def __init__(
        self,
        settings: ObserverSettings,
        totals: ChannelTotals,
        deadlines: Deadlines,
        requests: dict[int, Request],
    ) -> None:
        self._settings = settings
        self._totals = totals
        self._deadlines = deadlines
        self._requests = requests
        for key, request in requests.items():
            if request.is_open:
                self._await_answer(key, request)

    def was_requested(self, key: int) -> bool:
        """Whether the id was requested within the horizon."""
        return key in self._requests

    def is_live(self, key: int, clock_ms: int) -> bool:
        """Whether the latest request for the id is within the repair window."""
        request = self._requests.get(key)
        return request is not None and _within_window(request, clock_ms)

    def requested(
        self,
        key: int,
        by: int,
        held: bool,
        dialect: Dialect,
        time_ms: int,
        clock_ms: int,
    ) -> bool:
        """Record that a participant's frame requests an id.

        Args:
            key: Fingerprint of the id.
            by: Participant index or `UNKNOWN`.
            held: Whether the frame's own filter holds the id.
            dialect: Dialect of the frame.
            time_ms: Event time of the frame.
            clock_ms: The channel's clock.

        Returns:
            Whether this is known to be the participant's first request for the id.
        """
        self._totals.repair_requests += 1
        self._totals.repair_requests_for_received += held
        # Removed first, so that the dictionary stays in order of the latest request.
        request = self._requests.pop(key, None)
        window_ms = self._settings.repair_window_ms(dialect)
        if request is None:
            request = Request(time_ms, clock_ms, window_ms)
        elif not request.is_open:
            request.first_ms, request.is_open = time_ms, True
        request.latest_ms = clock_ms
        request.window_ms = window_ms
        request.requests_ms = [*request.requests_ms, time_ms][-_REMEMBERED:]
        is_first = by != UNKNOWN and by not in request.requesters
        if is_first and len(request.requesters) < _REMEMBERED:
            request.requesters.append(by)
        self._requests[key] = request
        self._await_answer(key, request)
        return is_first and by in request.requesters

    def requests_ms(self, key: int) -> list[int]:
        """Event times of the latest requests for an id, at most `_REMEMBERED`."""
        request = self._requests.get(key)
        return [] if request is None else request.requests_ms

    def responded(self, key: int, time_ms: int, clock_ms: int) -> bool:
        """Record a broadcast of the id; returns whether it responds to a request."""
        request = self._requests.get(key)
        if request is None or not _within_window(request, clock_ms):
            return False
        if not request.is_open:
            self._totals.repair_redundant += 1
            return True
        request.is_open = False
        self._totals.repair_answered += 1
        self._totals.repair_response.observe(max(0, time_ms - request.first_ms))
        return True

    def window_passed(self, key: int, deadline_ms: int) -> bool:
        """Expire an episode at the end of its window; returns whether it expired.

        It does not expire if it was answered or if the id was requested again.
        """
        request = self._requests.get(key)
        if request is None or not request.is_open or _end_of(request) != deadline_ms:
            return False
        self._expire(request)
        return True

    @property
    def oldest_ms(self) -> int | None:
        """Least `Request.latest_ms`; None if there is no request."""
        return next((one.latest_ms for one in self._requests.values()), None)

    def forget_before(self, clock_ms: int) -> None:
        """Forget ids whose latest request is before this clock, Unix ms."""
        for key in oldest(self._requests, lambda one: one.latest_ms < clock_ms):
            del self._requests[key]

    def evict(self) -> None:
        """Forget the oldest requests beyond the limit; one still open expires."""
        excess = max(0, len(self._requests) - self._settings.remembered)
        for key in list(islice(self._requests, excess)):
            request = self._requests.pop(key)
            if request.is_open:
                self._expire(request)
            self._totals.remembered_evicted += 1

    def _await_answer(self, key: int, request: Request) -> None:
        self._deadlines.add(_end_of(request), Due.EPISODE_EXPIRED, key)

    def _expire(self, request: Request) -> None:
        request.is_open = False
        self._totals.repair_expired += 1


def _end_of(request: Request) -> int:
    return request.latest_ms + request.window_ms


def _within_window(request: Request, clock_ms: int) -> bool:
    return clock_ms <= _end_of(request)
