"""Checks the times of repair requests and responses (docs/figures.md, 7).

SDS-R derives two delays from hashes. A participant may request a message T_req after it
notices that the message is missing. A participant that holds the message may respond
T_resp after it reads the request. The hash function is known only for js-waku and the
SDS-R guide, so only the dialect SPEC is checked. The check is lenient, because a
participant may notice a gap later than the tap does, and because a response does not
name the participant that responds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sds_core.observer.fingerprint import fingerprint
from sds_core.observer.journal import Journal
from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.repair_timing import RepairHash, request_offset_ms, response_offset_ms

_HASH = RepairHash.SHA256


@dataclass(slots=True)
class RepairTiming:
    """Checks when each participant first requests an id, and when responses come."""

    _settings: RuleSettings
    _totals: ChannelTotals
    _journal: Journal | None = None

    def requested(
        self, requester: str, message_id: str, known_ms: int, time_ms: int
    ) -> None:
        """Check the time of a participant's first request for a message.

        `known_ms` is the event time of the first frame in which another participant
        sent or named the message. Before this time, the requester cannot notice that it
        lacks the message.
        """
        settings = self._settings
        due_ms = request_due_ms(settings, requester, message_id, known_ms)
        self._totals.requests_timed += 1
        earliest_ms = due_ms - settings.transport_ms
        is_early = time_ms < earliest_ms
        self._totals.requests_early += is_early
        what = "request_early" if is_early else "request_on_time"
        self._note(message_id, what, time_ms, requester)

    def responded(
        self,
        sender: str,
        message_id: str,
        requests_ms: Sequence[int],
        participants: Iterable[str],
        time_ms: int,
    ) -> None:
        """Check the time of a response to repair requests.

        The response may be from any of `participants`, or from `sender`, which sent the
        message. The T_resp of `sender` is 0, so it may respond at once.
        """
        waits_ms = [time_ms - request_ms for request_ms in requests_ms]
        self._totals.responses_timed += 1
        for participant in (sender, *participants):
            if may_respond(self._settings, participant, sender, message_id, waits_ms):
                self._note(message_id, "response_explained", time_ms)
                return
        self._totals.responses_unexplained += 1
        self._note(message_id, "response_unexplained", time_ms)

    def _note(self, message_id: str, what: str, time_ms: int, who: str = "") -> None:
        if self._journal is not None:
            self._journal.note(fingerprint(message_id), what, time_ms, who)


def request_due_ms(
    settings: RuleSettings, requester: str, message_id: str, known_ms: int
) -> int:
    """Return the earliest time at which T_req allows a request, Unix ms."""
    t_min_ms = settings.t_min_ms
    # A checkpoint of an older release may have a T_max that is not above T_min.
    t_max_ms = max(settings.t_max_ms, t_min_ms + 1)
    return known_ms + request_offset_ms(
        requester, message_id, t_min_ms, t_max_ms, _HASH
    )


def may_respond(
    settings: RuleSettings,
    participant: str,
    sender: str,
    message_id: str,
    waits_ms: Iterable[int],
) -> bool:
    """Whether a response came when T_resp made a response of this participant due.

    `waits_ms` contains, for each request, the time from the request to the response.
    """
    offset_ms = response_offset_ms(
        participant, sender, message_id, settings.t_max_ms, _HASH
    )
    first_ms = offset_ms - settings.transport_ms
    last_ms = offset_ms + settings.sweep_ms + settings.transport_ms
    return any(first_ms <= wait_ms <= last_ms for wait_ms in waits_ms)
