"""When the next sync message is due (SDS, "Periodic Sync").

A reliable channel has a timer of its own (`sds_core.reliable_channel.sync_timer`).
"""

from __future__ import annotations

from math import inf
from random import Random
from typing import Final

from sds_core.message_channel.profile import Profile

# Factors on the drawn time of the next sync message, by the frame that caused the draw.
# After received content, the next sync message comes earlier, because a sync message
# acknowledges the content. The factors come from js-waku's ReliableChannel.
AFTER_CONTENT_SENT: Final = 1.0
AFTER_CONTENT_RECEIVED: Final = 0.5
AFTER_SYNC_RECEIVED: Final = 1.0
AFTER_SYNC_SENT: Final = 2.0


class SyncTimer:
    """Plans sync messages, few in a busy channel (SDS, "Periodic Sync").

    A sync message acknowledges received content. Therefore, received content makes our
    next sync message earlier. A sync message of another participant replaces ours,
    unless that participant sent the received content. Traffic delays our sync message
    up to a limit (`Profile.sync_put_off_limit`). While repair requests wait for a
    frame, nothing delays our sync message (SDS-R guide, "Periodic Sync Messages").

    Attributes:
        next_ms: When our next sync message is due, Unix ms.
        own_frame_ms: Time of our last frame, or of the start, Unix ms.
        owed_to: Sender whose content waits for an acknowledgement: the content arrived
            after `own_frame_ms`, and no sync message has acknowledged it. Empty if no
            content waits, or if content of several participants waits.
    """

    def __init__(
        self,
        profile: Profile,
        random: Random,
        next_ms: int,
        own_frame_ms: int,
        owed_to: str,
    ) -> None:
        self._interval_ms = profile.sync_interval_ms
        self._least_share = profile.sync_least_share
        self._put_off_limit = profile.sync_put_off_limit
        self._requests_factor = profile.sync_requests_factor
        self._random = random
        self.next_ms = next_ms
        self.own_frame_ms = own_frame_ms
        self.owed_to = owed_to

    @classmethod
    def started(cls, profile: Profile, random: Random, now_ms: int) -> SyncTimer:
        """Return the timer of a new participant, with a drawn time."""
        self = cls(profile, random, now_ms, now_ms, "")
        self.next_ms += self._delay_ms(AFTER_CONTENT_SENT)
        return self

    def content_sent(self, now_ms: int, *, requests_wait: bool) -> None:
        """We sent content, which replaces a sync message: plan the next one."""
        self._own_frame(now_ms)
        self._plan(AFTER_CONTENT_SENT, now_ms, inf, requests_wait=requests_wait)

    def content_received(
        self, sender_id: str, now_ms: int, others: int, *, requests_wait: bool
    ) -> None:
        """We received content: plan a sync message that acknowledges the content."""
        self.owed_to = sender_id if self.owed_to in ("", sender_id) else ""
        latest_ms = inf if self._put_off_limit is None else self.next_ms
        latest_ms = min(latest_ms, self._latest_ms(others))
        self._plan(
            AFTER_CONTENT_RECEIVED, now_ms, latest_ms, requests_wait=requests_wait
        )

    def sync_received(
        self, sender_id: str, now_ms: int, others: int, *, requests_wait: bool
    ) -> None:
        """Another participant sent a sync message: plan our next sync message."""
        latest_ms = self._latest_ms(others)
        if sender_id != self.owed_to:
            self.owed_to = ""
        elif self._put_off_limit is not None:
            latest_ms = min(latest_ms, self.next_ms)
        self._plan(AFTER_SYNC_RECEIVED, now_ms, latest_ms, requests_wait=requests_wait)

    def sync_sent(self, now_ms: int, *, requests_wait: bool) -> None:
        """We sent a sync message, or had nothing to send: plan the next one."""
        self._own_frame(now_ms)
        factor = AFTER_SYNC_SENT * (self._requests_factor if requests_wait else 1.0)
        self.next_ms = now_ms + self._delay_ms(factor)

    def _own_frame(self, now_ms: int) -> None:
        """Restart the limit on the delay; our frame acknowledges all messages."""
        self.own_frame_ms = now_ms
        self.owed_to = ""

    def _latest_ms(self, others: int) -> float:
        """Return the latest time to which traffic can delay the sync message, Unix ms.

        The delay is proportional to the group's size, so that large groups do not send
        more sync messages.
        """
        if self._put_off_limit is None:
            return inf
        limit_ms = self._put_off_limit * self._interval_ms * (1 + others)
        return self.own_frame_ms + limit_ms

    def _plan(
        self, factor: float, now_ms: int, latest_ms: float, *, requests_wait: bool
    ) -> None:
        """Draw the next time, up to the limit; waiting requests never add a delay."""
        # If the interval is fixed (nim-sds), only our own sync messages set the next
        # time.
        if self._least_share is None:
            return
        if requests_wait:
            factor *= self._requests_factor
            latest_ms = min(latest_ms, self.next_ms)
        self.next_ms = int(min(now_ms + self._delay_ms(factor), latest_ms))

    def _delay_ms(self, factor: float) -> int:
        if self._least_share is None:
            return self._interval_ms
        share = self._least_share + self._random.random()
        # A timer that is always due would cause an endless loop, so the minimum is 1
        # ms.
        return 1 + int(share * self._interval_ms * factor)
