"""Decides when to send the next sync message.

Participants share the task of sending sync messages. Each participant draws a random
time for its next sync message. If a frame of another participant arrives before this
time, the participant draws a new time. Frames of other participants do not delay a sync
message with our repair requests, because only we send our requests (SDS-R guide,
"Periodic Sync Messages"). Source: RELIABLE-CHANNEL-API, "Synchronisation messages".

The SDS participant has its own timer (`sds_core.message_channel.sync`). A reliable
channel does not use that timer, because that timer cannot be stopped, and its maximum
delay grows with the number of participants.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from random import Random

MOST_POSTPONEMENT = 2
"""Maximum delay of our sync message by frames of other participants, in intervals.

The delay counts from our last frame. Without a maximum, a participant that only
receives messages of a steady sender would never acknowledge them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncMultipliers:
    """Factors by which the random time until our next sync message is multiplied.

    The defaults come from RELIABLE-CHANNEL-API.

    Attributes:
        content_received: Factor after content arrived. Our sync message should
            acknowledge this content soon.
        content_sent: Factor after we sent content. The content's frame already
            contained our causal history.
        sync_received: Factor after another participant's sync message arrived. That
            message replaces ours.
        sync_sent: Factor after our own sync message. js-waku uses the factor 2.
        sync_failed: Factor after our sync message could not be sent. Either the network
            did not accept it, or the node is offline, or other frames wait, or the rate
            limit is reached.
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
        requests_factor: Repair requests can make the sync message earlier. The earliest
            time is (time of our last frame) + (drawn time) x this factor.

    Attributes:
        next_ms: When the next sync message is due without repair requests, Unix ms; inf
            if never.
        latest_ms: Latest time to which frames of other participants can delay the sync
            message, Unix ms.
        requests_ms: Earliest time to which repair requests can move the sync message,
            Unix ms; inf if never.
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
        """Draw a new time after we sent a frame, or failed to send a sync message."""
        if not self._interval_ms:
            return
        drawn_ms = self._drawn_ms(multiplier)
        self.next_ms = now_ms + drawn_ms
        # The minimum is 1 ms, because a timer that is always due would cause an endless
        # loop.
        self.requests_ms = now_ms + max(1, int(drawn_ms * self._requests_factor))
        self.latest_ms = max(
            self.next_ms, now_ms + MOST_POSTPONEMENT * self._interval_ms
        )

    def stop(self) -> None:
        """Cancel the planned sync message."""
        self.next_ms = self.latest_ms = self.requests_ms = inf

    def put_off(self, multiplier: float, now_ms: int) -> None:
        """After another participant's frame, draw a new time, at most `latest_ms`."""
        if self._interval_ms:
            drawn_ms = now_ms + self._drawn_ms(multiplier)
            self.next_ms = min(drawn_ms, self.latest_ms)

    def _drawn_ms(self, multiplier: float) -> int:
        # The minimum is 1 ms, because a timer that is always due would cause an endless
        # loop.
        return 1 + int(self._random.random() * self._interval_ms * multiplier)
