"""A budget of messages per epoch (RELIABLE-CHANNEL-API, "Rate limit management").

RLN allows each member a number of messages per epoch. Every segment, retry, sync
message, repair and ephemeral message counts as one message. If a message would exceed
the budget, it waits in `Outward`, or is dropped.

    `drop_reason`          first sendings   retries, syncs, repairs   ephemeral messages
    None                   sent             sent                      sent
    RATE_LIMIT_APPROACHED  sent             wait                      dropped
    RATE_LIMIT_REACHED     wait             wait                      dropped

The table has a column for each of three classes of messages. The requirements of the
rate limit manager (logos-co/roadmap, furps/application/rate_limit_manager.md) call the
priorities of these classes critical, normal and optional.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from fractions import Fraction
from math import ceil, inf

import msgspec

from sds_core.ranges import check_least
from sds_core.reliable_channel.errors import StateError
from sds_core.reliable_channel.events import DropReason

_SHARE_STEPS = 1_000_000
"""Shares are rounded to fractions with this denominator, so 0.7 of 10 is exactly 7."""


class Window(StrEnum):
    """The period to which the budget applies.

    EPOCH: The budget applies to each epoch. As in RLN, epochs begin at multiples of
    their length since 1970. Around the end of an epoch, the budgets of two epochs can
    be spent within a short time. SLIDING: The budget applies to every period that is as
    long as an epoch, whenever the period begins.
    """

    EPOCH = "epoch"
    SLIDING = "sliding"


class Urgency(Enum):
    """What happens to a frame if the budget is nearly or completely spent.

    FIRST: A frame with new content waits only if the whole budget is spent. AGAIN: A
    retry, repair or sync message waits if `approached_share` of the budget is spent.
    DROPPABLE: An ephemeral message is dropped if `approached_share` of the budget is
    spent.
    """

    FIRST = auto()
    AGAIN = auto()
    DROPPABLE = auto()


class Budget:
    """Limits the number of messages per period. This base class has no limit."""

    def allows(self, urgency: Urgency, now_ms: int) -> bool:
        """Return whether a message of this urgency may be sent now."""
        return True

    def take(self, urgency: Urgency, now_ms: int) -> bool:
        """If a message may be sent now, count it; return whether it may be sent."""
        return True

    def drop_reason(self, now_ms: int) -> DropReason | None:
        """Return why ephemeral messages are dropped now; None if they are sent."""
        return None

    def renewed_ms(self, now_ms: int) -> float:
        """Return when waiting messages may next be sent, Unix ms; inf if never."""
        return inf

    def set_back(self, by_ms: int) -> None:
        """Move stored times back, because the clock was ahead before a restart."""

    def state(self) -> bytes:
        """Return the state as bytes, which `restore` of the same class reads."""
        return b""

    def restore(self, state: bytes) -> None:
        """Restore the result of `state`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimitOptions:
    """Options of `RateLimit`.

    Attributes:
        messages_per_epoch: The budget: the maximum number of messages in an epoch. If
            the value is 0, nothing is sent.
        approached_share: Share of the budget, in (0, 1]. When this share is spent, the
            limit counts as approached (`DropReason.RATE_LIMIT_APPROACHED`).
    """

    # 64/WAKU2-NETWORK: 100 messages in 600 s.
    messages_per_epoch: int = 100
    epoch_ms: int = 600_000
    # RELIABLE-CHANNEL-API: "90% capacity".
    approached_share: float = 0.9
    window: Window = Window.EPOCH

    def __post_init__(self) -> None:
        """Raise ValueError if an option is out of its range."""
        check_least(self, {"messages_per_epoch": 0, "epoch_ms": 1})
        # If `approached_share` were 0, retries would wait forever.
        if not 0 < self.approached_share <= 1:
            share = self.approached_share
            message = f"approached_share is {share}, but must be above 0 and at most 1"
            raise ValueError(message)

    @property
    def approached_messages(self) -> int:
        """Number of sent messages at which the limit counts as approached."""
        share = Fraction(round(self.approached_share * _SHARE_STEPS), _SHARE_STEPS)
        return ceil(share * self.messages_per_epoch)


class RateLimit(Budget):
    """Limits the messages of all channels of one RLN member to the member's budget.

    Times are Unix ms and never decrease, except after `set_back`.
    """

    def __init__(self, options: RateLimitOptions) -> None:
        self._options = options
        # Times of the messages in the window, ascending.
        self._times_ms: deque[int] = deque()

    def used(self, now_ms: int) -> int:
        """Return the number of messages that were sent in the current window."""
        times = self._times_ms
        while times and self._freed_ms(times[0]) <= now_ms:
            times.popleft()
        return len(times)

    def allows(self, urgency: Urgency, now_ms: int) -> bool:
        """See `Budget`."""
        reason = self.drop_reason(now_ms)
        if reason is DropReason.RATE_LIMIT_APPROACHED:
            return urgency is Urgency.FIRST
        return reason is None

    def take(self, urgency: Urgency, now_ms: int) -> bool:
        """See `Budget`."""
        if not self.allows(urgency, now_ms):
            return False
        self._times_ms.append(now_ms)
        return True

    def drop_reason(self, now_ms: int) -> DropReason | None:
        """See `Budget`."""
        used = self.used(now_ms)
        if used >= self._options.messages_per_epoch:
            return DropReason.RATE_LIMIT_REACHED
        if used >= self._options.approached_messages:
            return DropReason.RATE_LIMIT_APPROACHED
        return None

    def renewed_ms(self, now_ms: int) -> float:
        """Return when waiting messages may next be sent, Unix ms; inf if never.

        If `drop_reason` now returns a reason, this reason ends at the returned time.
        """
        used = self.used(now_ms)
        budget = self._options.messages_per_epoch
        if not used or not budget:
            return inf
        approached = self._options.approached_messages
        limit = next((one for one in (budget, approached) if used >= one), used)
        return self._freed_ms(self._times_ms[used - limit])

    def set_back(self, by_ms: int) -> None:
        """See `Budget`."""
        self._times_ms = deque(time_ms - by_ms for time_ms in self._times_ms)

    def state(self) -> bytes:
        """Return the state as bytes, which `restore` reads."""
        return msgspec.msgpack.encode(list(self._times_ms))

    def restore(self, state: bytes) -> None:
        """Restore the result of `state`, even if the options have changed since then.

        The bytes are empty if the channel had no limit; no message then counts as sent.

        Raises:
            StateError: The bytes are not a result of `state`.
        """
        if not state:
            return
        try:
            times = msgspec.msgpack.decode(state, type=list[int])
        except msgspec.DecodeError as error:
            detail = f"the state of the rate limit is damaged: {error}"
            raise StateError(detail) from error
        self._times_ms = deque(sorted(times))

    def _freed_ms(self, time_ms: int) -> int:
        epoch_ms = self._options.epoch_ms
        if self._options.window is Window.SLIDING:
            return time_ms + epoch_ms
        return (time_ms // epoch_ms + 1) * epoch_ms
