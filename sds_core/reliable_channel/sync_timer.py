"""When the next sync message is due (document, "Synchronisation messages").

Participants share the work: each participant draws a random time for its sync message.
Traffic of others replaces the sync message, and the participant draws again. Other
participants do not send our repair requests, so nothing delays a sync message that
carries requests (SDS-R guide, "Periodic Sync Messages").

This timer replaces the timer of the SDS participant (`sds_core.message_channel.sync`).
The SDS participant's timer cannot stop, and its limit grows with the group.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from random import Random

MOST_POSTPONEMENT = 2
"""Maximum number of intervals by which traffic delays a sync message.

Without a limit, a participant that only listens to a steady sender would never
acknowledge anything.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncMultipliers:
    """Factors on the drawn time, by cause of the draw, with the document's defaults.

    Attributes:
        content_received: The next sync message is earlier than usual, because it
            acknowledges the content.
        content_sent: The next sync message is later than usual, because our content
            carried our history.
        sync_received: The next sync message is later than usual, because another
            participant's sync message replaces ours.
        sync_sent: Factor after our own sync message; js-waku uses 2.
        sync_failed: The next sync message is later, because the network fails or the
            budget is spent.
    """

    content_received: float = 0.5
    content_sent: float = 1.0
    sync_received: float = 1.0
    sync_sent: float = 1.0
    sync_failed: float = 2.0

    def __post_init__(self) -> None:
        """Raise ValueError if a factor is not positive."""
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                message = f"{name} is {getattr(self, name)}, but must be above 0"
                raise ValueError(message)


class ChannelSyncTimer:
    """Draws the time of the next sync message.

    Args:
        requests_factor: The drawn time, multiplied by this factor, is the minimum time
            between our last frame and a sync message with repair requests.

    Attributes:
        next_ms: When the next sync message is due, Unix ms; inf if never.
        latest_ms: Latest time to which traffic of others may delay the sync message,
            Unix ms.
        requests_ms: When a sync message may first be sent for repair requests, Unix ms;
            inf if never.
    """

    def __init__(
        self, interval_ms: int, requests_factor: float, random: Random
    ) -> None:
        self._interval_ms = interval_ms
        self._requests_factor = requests_factor
        self._random = random
        self.next_ms: float = inf
        self.latest_ms: float = inf
        self.requests_ms: float = inf

    def due_ms(self, request_ms: float) -> float:
        """Return when a sync message is due, Unix ms; inf if never."""
        return min(self.next_ms, max(request_ms, self.requests_ms))

    def restart(self, multiplier: float, now_ms: int) -> None:
        """Draw a new time after our frame, or after a frame that could not be sent."""
        if not self._interval_ms:
            return
        drawn_ms = self._drawn_ms(multiplier)
        self.next_ms = now_ms + drawn_ms
        # Less than 1 ms would cause an endless loop.
        self.requests_ms = now_ms + max(1, int(drawn_ms * self._requests_factor))
        self.latest_ms = max(
            self.next_ms, now_ms + MOST_POSTPONEMENT * self._interval_ms
        )

    def stop(self) -> None:
        """Plan no sync message."""
        self.next_ms = self.latest_ms = self.requests_ms = inf

    def put_off(self, multiplier: float, now_ms: int) -> None:
        """Draw a new time after a frame of another participant, within the limit."""
        if self._interval_ms:
            drawn_ms = now_ms + self._drawn_ms(multiplier)
            self.next_ms = min(drawn_ms, self.latest_ms)

    def _drawn_ms(self, multiplier: float) -> int:
        # A timer that is always due would cause an endless loop, so the minimum is 1
        # ms.
        return 1 + int(self._random.random() * self._interval_ms * multiplier)
