"""Decides when the next sync message is due (SDS, "Periodic Sync").

A reliable channel uses another timer (`sds_core.reliable_channel.sync_timer`).
"""

from __future__ import annotations

from math import inf
from random import Random
from typing import Final

from sds_core.message_channel.profile import Profile

# After each frame, a random time is multiplied by the factor for this kind of frame.
# The product is the time until our next sync message. The factor for received content
# is small, so that our sync message acknowledges the content soon. The factors come
# from js-waku's ReliableChannel.
AFTER_CONTENT_SENT: Final = 1.0
AFTER_CONTENT_RECEIVED: Final = 0.5
AFTER_SYNC_RECEIVED: Final = 1.0
AFTER_SYNC_SENT: Final = 2.0


class SyncTimer:
    """Plans our sync messages, which are few in a busy channel (SDS, "Periodic Sync").

    A sync message acknowledges received content, so received content makes our next
    sync message earlier. A sync message of another participant delays ours, unless all
    content that ours would acknowledge is from that participant. The delay has a limit
    (`Profile.sync_put_off_limit`). While repair requests wait to be sent, nothing
    delays our sync message (SDS-R guide, "Periodic Sync Messages").

    Attributes:
        next_ms: When our next sync message is due, Unix ms.
        own_frame_ms: Time of our last frame, Unix ms; the start time if we have sent no
            frame.
        owed_to: Sender of the unacknowledged content: content that arrived after
            `own_frame_ms`, if no sync message has acknowledged it yet. Empty if no
            unacknowledged content exists, or if several participants sent it.
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
        """Return a new participant's timer, with its first sync message planned."""
        self = cls(profile, random, now_ms, now_ms, "")
        self.next_ms += self._delay_ms(AFTER_CONTENT_SENT)
        return self

    def content_sent(self, now_ms: int, *, requests_wait: bool) -> None:
        """Plan the next sync message after content that we sent."""
        self._own_frame(now_ms)
        self._plan(AFTER_CONTENT_SENT, now_ms, inf, requests_wait=requests_wait)

    def content_received(
        self, sender_id: str, now_ms: int, others: int, *, requests_wait: bool
    ) -> None:
        """Plan our next sync message, which acknowledges content that we received."""
        self.owed_to = sender_id if self.owed_to in ("", sender_id) else ""
        latest_ms = inf if self._put_off_limit is None else self.next_ms
        latest_ms = min(latest_ms, self._latest_ms(others))
        self._plan(
            AFTER_CONTENT_RECEIVED, now_ms, latest_ms, requests_wait=requests_wait
        )

    def sync_received(
        self, sender_id: str, now_ms: int, others: int, *, requests_wait: bool
    ) -> None:
        """Plan our next sync message after a sync message of another participant."""
        latest_ms = self._latest_ms(others)
        if sender_id != self.owed_to:
            self.owed_to = ""
        elif self._put_off_limit is not None:
            latest_ms = min(latest_ms, self.next_ms)
        self._plan(AFTER_SYNC_RECEIVED, now_ms, latest_ms, requests_wait=requests_wait)

    def sync_sent(self, now_ms: int, *, requests_wait: bool) -> None:
        """Plan our next sync message after a due sync message was sent or skipped."""
        self._own_frame(now_ms)
        factor = AFTER_SYNC_SENT * (self._requests_factor if requests_wait else 1.0)
        self.next_ms = now_ms + self._delay_ms(factor)

    def _own_frame(self, now_ms: int) -> None:
        """Record that we sent a frame, which acknowledges all received content.

        The maximum delay of our next sync message counts from this frame.
        """
        self.own_frame_ms = now_ms
        self.owed_to = ""

    def _latest_ms(self, others: int) -> float:
        """Return the latest time to which others' frames may delay our sync message.

        The result is in Unix ms; inf if the profile has no limit. The maximum delay is
        proportional to the number of participants, so a large group does not send more
        sync messages than a small group.
        """
        if self._put_off_limit is None:
            return inf
        limit_ms = self._put_off_limit * self._interval_ms * (1 + others)
        return self.own_frame_ms + limit_ms

    def _plan(
        self, factor: float, now_ms: int, latest_ms: float, *, requests_wait: bool
    ) -> None:
        """Draw a random time, at most `latest_ms`, for our next sync message."""
        # If the interval is fixed (nim-sds), only `sync_sent` plans the next sync
        # message. While repair requests wait, nothing delays the sync message.
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
        # The minimum is 1 ms, because a timer that is always due would cause an endless
        # loop.
        return 1 + int(share * self._interval_ms * factor)
