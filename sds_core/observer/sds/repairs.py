"""Tracks repair requests, repair episodes and responses (docs/figures.md, 7)."""

from __future__ import annotations

from dataclasses import dataclass

from sds_core.native import native
from sds_core.observer.deadlines import Deadlines, Due
from sds_core.observer.journal import Journal
from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.participants import UNKNOWN
from sds_core.observer.sds.requests import REMEMBERED, Request, RequestTable
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.wire import Dialect


@native
@dataclass(slots=True)
class Repairs:
    """Tracks repair episodes by message id."""

    _settings: RuleSettings
    _totals: ChannelTotals
    _deadlines: Deadlines
    _requests: RequestTable
    _journal: Journal | None

    def was_requested(self, key: int) -> bool:
        """Whether the id was requested within the retention window."""
        return key in self._requests

    def is_live(self, key: int, clock_ms: int) -> bool:
        """Whether the repair window of the latest request for the id is still open."""
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
        """Record a request; return whether it is the participant's first for the id.

        `held` says whether the filter of the requesting frame holds the id.
        """
        self._totals.repair_requests += 1
        self._totals.repair_requests_for_received += held
        # The entry is removed here and appended later, so that the table stays in order
        # of the latest request.
        request = self._requests.pop(key)
        window_ms = self._settings.repair_window_ms(dialect)
        if request is None:
            request = Request(time_ms, clock_ms, window_ms)
        elif not request.is_open:
            request.first_ms, request.is_open = time_ms, True
        request.latest_ms = clock_ms
        request.window_ms = window_ms
        request.requests_ms = [*request.requests_ms, time_ms][-REMEMBERED:]
        is_first = by != UNKNOWN and by not in request.requesters
        if is_first and len(request.requesters) < REMEMBERED:
            request.requesters.append(by)
        self._requests[key] = request
        self._deadlines.add(request.end_ms, Due.EPISODE_EXPIRED, key)
        return is_first and by in request.requesters

    def requests_ms(self, key: int) -> list[int]:
        """Event times of the latest requests for an id, up to `REMEMBERED` of them."""
        request = self._requests.get(key)
        return [] if request is None else request.requests_ms

    def responded(self, key: int, time_ms: int, clock_ms: int) -> bool:
        """Record a broadcast of an id; return whether it answers a request."""
        request = self._requests.get(key)
        if request is None or not _within_window(request, clock_ms):
            return False
        if not request.is_open:
            self._totals.repair_redundant += 1
            self._note(key, "repair_redundant", time_ms)
            return True
        request.is_open = False
        self._totals.repair_answered += 1
        self._note(key, "repair_answered", time_ms)
        self._totals.repair_response.observe(max(0, time_ms - request.first_ms))
        return True

    def window_passed(self, key: int, deadline_ms: int) -> bool:
        """Expire an id's open episode if its repair window ends at `deadline_ms`.

        Returns:
            Whether an episode expired.
        """
        request = self._requests.get(key)
        if request is None or not request.is_open or request.end_ms != deadline_ms:
            return False
        request.is_open = False
        self._totals.repair_expired += 1
        self._note(key, "repair_expired", deadline_ms)
        return True

    @property
    def oldest_ms(self) -> int | None:
        """The smallest `Request.latest_ms`; None if no request is remembered."""
        return self._requests.oldest_ms

    def forget_before(self, clock_ms: int) -> None:
        """Drop ids whose latest request came before `clock_ms`, Unix ms."""
        while (oldest_ms := self._requests.oldest_ms) is not None:
            if oldest_ms >= clock_ms:
                return
            self._requests.remove(self._requests.first())

    def evict(self) -> None:
        """Drop the oldest entries beyond `RuleSettings.remembered`.

        An open episode of a dropped entry counts as expired.
        """
        while len(self._requests) > self._settings.remembered:
            key = self._requests.first()
            self._totals.repair_expired += self._requests.is_open(key)
            self._requests.remove(key)
            self._totals.remembered_evicted += 1

    def _note(self, key: int, what: str, time_ms: int) -> None:
        if self._journal is not None:
            self._journal.note(key, what, time_ms)


def _within_window(request: Request, clock_ms: int) -> bool:
    return clock_ms <= request.end_ms
