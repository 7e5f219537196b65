"""Whether requests and responses keep to their times (observer model, section 7).

SDS-R derives from hashes when a participant may ask (T_req after it notices that a
message is missing) and when a holder may answer (T_resp after it reads the request).
Only the hash of js-waku and the guide is known, so only the dialect SPEC is looked at.
What the observer cannot know makes it lenient: a participant may notice later than the
tap, and who answered is not said.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.settings import ObserverSettings
from sds_core.repair_timing import (
    RepairHash,
    request_offset_ms,
    response_offset_ms,
)

_HASH = RepairHash.SHA256


class RepairTiming:
    """Checks the first request of each participant, and each response."""

    def __init__(self, settings: ObserverSettings, totals: ChannelTotals) -> None:
        self._settings = settings
        self._totals = totals

    def requested(
        self, requester: str, message_id: str, known_ms: int, time_ms: int
    ) -> None:
        """A participant asks for a message for the first time.

        Args:
            requester: Participant id.
            message_id: What it asks for.
            known_ms: Event time of the first frame of another participant that shows
                that the message exists: the requester cannot have noticed earlier.
            time_ms: Event time of the request.
        """
        settings = self._settings
        offset_ms = request_offset_ms(
            requester, message_id, settings.t_min_ms, settings.t_max_ms, _HASH
        )
        self._totals.requests_timed += 1
        earliest_ms = known_ms + offset_ms - settings.transport_ms
        self._totals.requests_early += time_ms < earliest_ms

    def responded(
        self,
        sender: str,
        message_id: str,
        requests_ms: Sequence[int],
        participants: Iterable[str],
        time_ms: int,
    ) -> None:
        """A message is broadcast in response to requests.

        Args:
            sender: Of the message, whose own time to answer is at once.
            message_id: The message.
            requests_ms: Event times of the requests that it may answer.
            participants: Everybody who may have answered; the sender need not be in.
            time_ms: Event time of the response.
        """
        settings = self._settings
        waits_ms = [time_ms - request_ms for request_ms in requests_ms]
        self._totals.responses_timed += 1
        for participant in (sender, *participants):
            offset_ms = response_offset_ms(
                participant, sender, message_id, settings.t_max_ms, _HASH
            )
            first_ms = offset_ms - settings.transport_ms
            last_ms = offset_ms + settings.sweep_ms + settings.transport_ms
            if any(first_ms <= wait_ms <= last_ms for wait_ms in waits_ms):
                return
        self._totals.responses_unexplained += 1
