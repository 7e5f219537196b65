"""The outgoing buffer: our messages that are not acknowledged yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import inf

from sds_core.message_channel.events import (
    Acknowledged,
    BloomUnusable,
    Broadcast,
    Buffer,
    Cause,
    Event,
    Evicted,
    Evidence,
    PossiblyAcknowledged,
    Retried,
    RetriesExhausted,
    Step,
)
from sds_core.message_channel.profile import Profile
from sds_core.message_channel.sized_dict import SizedDict
from sds_core.wire import (
    BloomError,
    Frame,
    count_set_bits,
    false_positive_rate,
    filter_bits,
    probes,
)


@dataclass(eq=False, slots=True)
class Outgoing:
    """One message of ours that is not acknowledged yet.

    Attributes:
        retry_ms: When the message will be broadcast again, Unix ms; inf if never.
        seen_by: Senders of the filters that hold the message and count towards its
            acknowledgement.
        filters: Number of filters that hold the message and count towards its
            acknowledgement. The first such filter of a participant always counts. The
            participant's later filters count only while the number of known other
            participants is below `Profile.possible_acks_threshold`, and only if
            `Profile.possible_acks_capped` is False.
        probes: Size (m_bits, k) of the filter that was checked last, and the bit
            positions of the message's id in filters of this size.
    """

    value: bytes
    sent_ms: int
    retry_ms: float
    attempts: int = 0
    is_possibly_acknowledged: bool = False
    seen_by: set[str] = field(default_factory=set)
    filters: int = 0
    probes: tuple[tuple[int, int], tuple[tuple[int, int], ...]] | None = None


class OutgoingBuffer:
    """Our unacknowledged and possibly acknowledged messages, oldest first."""

    def __init__(self, profile: Profile) -> None:
        # Cached time of the earliest retry. If `_stale` is True, the time must be
        # computed again.
        self._next_ms: float = inf
        self._stale = False
        self._profile = profile
        self.messages: SizedDict[Outgoing] = SizedDict(lambda own: len(own.value))

    @property
    def next_ms(self) -> float:
        """When the next message will be broadcast again, Unix ms; inf if never."""
        if self._stale:
            self._stale = False
            times_ms = (message.retry_ms for message in self.messages.values())
            self._next_ms = min(times_ms, default=inf)
        return self._next_ms

    def ids(self, *, are_possibly_acknowledged: bool) -> tuple[str, ...]:
        """Return ids, either of unacknowledged or of possibly acknowledged messages.

        The ids are in the order in which the messages were sent, oldest first.
        """
        return tuple(
            message_id
            for message_id, message in self.messages.items()
            if message.is_possibly_acknowledged is are_possibly_acknowledged
        )

    def add(self, message_id: str, value: bytes, now_ms: int) -> Iterator[Event]:
        """Add a message that is broadcast now for the first time."""
        profile = self._profile
        retry_ms = now_ms + profile.retry_unacknowledged_ms
        self.messages[message_id] = Outgoing(value, now_ms, retry_ms)
        self._stale = True
        while self.messages.is_over(
            profile.outgoing_limit, profile.outgoing_bytes_limit
        ):
            evicted = self.messages.oldest()
            del self.messages[evicted]
            yield Evicted(Buffer.OUTGOING, evicted)

    def remove(self, message_id: str) -> bool:
        """Remove a message; return whether the buffer had it."""
        self._stale = True
        return self.messages.pop(message_id, None) is not None

    def review(self, frame: Frame, others: int) -> Iterator[Event]:
        """Find which of our messages a frame's sender received.

        Source: SDS, "Review ACK Status". `others` is the number of known other
        participants, at least 1.
        """
        for entry in frame.causal_history:
            message_id = entry.message_id
            if self.messages.pop(message_id, None) is not None:
                self._stale = True
                yield Acknowledged(message_id, frame.sender_id, Evidence.CAUSAL_HISTORY)
        if self.messages and frame.bloom_filter:
            yield from self._review_filter(frame, others)

    def sweep(self, now_ms: int) -> Step:
        """Return the rebroadcasts that are due, unacknowledged messages first."""
        broadcasts: list[Broadcast] = []
        events: list[Event] = []
        due = sorted(
            (message.is_possibly_acknowledged, message.retry_ms, message_id)
            for message_id, message in self.messages.items()
            if message.retry_ms <= now_ms
        )
        for _, _, message_id in due:
            message = self.messages[message_id]
            if message.attempts >= self._profile.max_retries:
                message.retry_ms = inf
                events.append(RetriesExhausted(message_id))
                continue
            message.attempts += 1
            message.sent_ms = now_ms
            message.retry_ms = now_ms + self._period_ms(message)
            broadcasts.append(Broadcast(Cause.RETRY, message_id, message.value))
            events.append(Retried(message_id, message.attempts))
        self._stale = True
        return Step(broadcasts, events)

    def restore(self, messages: dict[str, Outgoing]) -> None:
        """Restore the buffer from the messages of a snapshot, oldest first."""
        self.messages.update(messages)
        self._stale = True

    def _review_filter(self, frame: Frame, others: int) -> Iterator[Event]:
        profile = self._profile
        try:
            bits, m_bits, k = filter_bits(
                frame.dialect, frame.bloom_filter, profile.bloom
            )
        except BloomError as error:
            yield BloomUnusable(frame.message_id, str(error))
            return
        size = (m_bits, k)
        rate: float | None = None
        sender_id = frame.sender_id
        threshold = profile.possible_acks_threshold
        max_rate = profile.possible_acks_max_false_positive_rate
        if max_rate is None:
            max_rate = profile.bloom.error_rate
        needed = inf if threshold is None else threshold
        has_few_others = others < needed < inf
        if has_few_others and profile.possible_acks_capped:
            needed, has_few_others = others, False
        acknowledged = []
        for message_id, message in self.messages.items():
            # If `has_few_others` is False, only the first filter of each participant
            # counts.
            is_again = sender_id in message.seen_by
            if is_again and not has_few_others:
                if len(message.seen_by) >= needed:
                    acknowledged.append(message_id)
                continue
            if message.probes is None or message.probes[0] != size:
                message.probes = (size, probes(message_id, frame.dialect, m_bits, k))
            if not all(bits[index] & mask for index, mask in message.probes[1]):
                continue
            if rate is None:
                rate = false_positive_rate(
                    count_set_bits(frame.dialect, bits, m_bits), m_bits, k
                )
                if rate > max_rate:
                    detail = f"its false-positive rate is {rate:.3f}"
                    yield BloomUnusable(frame.message_id, detail)
            counts = threshold is not None and rate <= max_rate
            if counts:
                message.seen_by.add(sender_id)
                message.filters += 1
            if not is_again and (counts or not message.is_possibly_acknowledged):
                message.is_possibly_acknowledged = True
                self._stale = True
                if message.retry_ms < inf:
                    message.retry_ms = message.sent_ms + self._period_ms(message)
                yield PossiblyAcknowledged(message_id, sender_id, len(message.seen_by))
            witnesses = message.filters if has_few_others else len(message.seen_by)
            if counts and witnesses >= needed:
                acknowledged.append(message_id)
        for message_id in acknowledged:
            del self.messages[message_id]
            yield Acknowledged(message_id, sender_id, Evidence.BLOOM_FILTER)

    def _period_ms(self, message: Outgoing) -> int:
        if message.is_possibly_acknowledged:
            return self._profile.retry_possibly_acknowledged_ms
        return self._profile.retry_unacknowledged_ms
