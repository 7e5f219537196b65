"""Options of a channel (RELIABLE-CHANNEL-API, "Create reliable channel").

RELIABLE-CHANNEL-API defines the first eleven options of `ReliableChannelOptions` and
their defaults.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from sds_core.message_channel import Profile
from sds_core.ranges import check_least
from sds_core.reliable_channel.encryption import EncryptionScope
from sds_core.reliable_channel.rate_limit import RateLimitOptions
from sds_core.reliable_channel.segmentation import SegmentationOptions
from sds_core.reliable_channel.segmentation.options import HEADER_ROOM_BYTES
from sds_core.reliable_channel.sync_timer import SyncMultipliers
from sds_core.waku import MAX_META_BYTES, RELIABLE_CHANNEL_META

_NEVER_MS: Final = 2**50
"""Interval so long that a timer of the SDS participant never expires.

The channel uses its own timers instead.
"""

_ENVELOPE_BYTES: Final = 1_024
"""Bytes of a Waku message that are reserved for everything except the SDS frame.

These bytes hold the encryption overhead, the content topic, the RLN proof and
protobuf's fields.
"""

_CONTENT_CIPHER_BYTES: Final = 512
"""Bytes of a frame that are reserved for the encryption overhead of its segment."""

_HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * _HOUR_MS


class RetrievalStrategy(StrEnum):
    """How a channel fetches missing messages.

    STORE: It queries a store. SDS_R: It requests repairs from other participants. BOTH:
    It does both. NONE: It does neither.
    """

    BOTH = "both"
    STORE = "store"
    SDS_R = "sds-r"
    NONE = "none"

    @property
    def uses_store(self) -> bool:
        """Whether the channel fetches missing messages from a store."""
        return self in (RetrievalStrategy.BOTH, RetrievalStrategy.STORE)

    @property
    def uses_repair(self) -> bool:
        """Whether the channel requests repairs, and answers repair requests."""
        return self in (RetrievalStrategy.BOTH, RetrievalStrategy.SDS_R)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Maximum numbers and sizes of what a channel holds.

    Source: RELIABLE-CHANNEL-API, "Resource exhaustion".

    Attributes:
        messages: Own messages for which the channel reports events. If the limit is
            exceeded, the channel stops tracking the oldest message.
        retries, retries_bytes: Own chunks that may be sent again. If a limit is
            exceeded, the channel does not send the oldest chunk again.
        queue, queue_bytes: Frames and chunks that wait to be sent. If the queue is
            full, a new message is refused, and a new retry or repair replaces the
            oldest retry or repair in the queue.
        intake, intake_bytes: Received messages that wait to be processed. If a limit is
            exceeded, the oldest message is dropped. SDS later notices that this message
            is missing.
        ephemerals: Received ephemeral messages that the channel remembers, to recognise
            copies. If the limit is exceeded, the oldest message is forgotten.
    """

    messages: int = 1_000
    retries: int = 2_000
    retries_bytes: int = 67_108_864
    queue: int = 4_000
    queue_bytes: int = 134_217_728
    intake: int = 1_000
    intake_bytes: int = 67_108_864
    ephemerals: int = 1_000
    missing: int = 10_000
    # With more hashes, the URL and headers of a REST request to a node are too long.
    hashes_per_query: int = 50
    pages_per_query: int = 100
    page_size: int = 20  # js-waku's

    def __post_init__(self) -> None:
        """Raise ValueError if a limit is below 1."""
        check_least(self, dict.fromkeys(self.__slots__, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliableChannelOptions:
    """Options of a channel. Times are in ms.

    Attributes:
        sync_min_interval_ms: Maximum of the random wait until the next sync message.
            The wait is then multiplied by a factor of `sync_multipliers`. If the value
            is 0, the channel sends no sync messages.
        retry_interval_ms: Time until an unacknowledged message is sent again.
        retrieve_frequency_ms: Time between two store queries for missing messages.
        sweep_in_buf_interval_ms: Time between sweeps of the incoming buffer.
        query_on_connect: Whether to query a store for missed messages after the node
            has connected to the store. Such a query is a "query on connect".
        process_task_min_elapse_ms: Minimum time between two batches of received
            messages that the channel processes.
        timeout_for_lost_messages_ms: Time after which a missing message counts as lost,
            without the time in which the channel is stopped or its node is offline. If
            None or 0, no missing message counts as lost because of its age.
        possible_acks_threshold: Number of received Bloom filters that must seem to hold
            a message before the message counts as acknowledged.
        segmentation: How payloads are split. If None, each payload is sent in one
            message. If a segment of the configured size does not fit into a frame, the
            channel uses a smaller size.
        query_on_connect_after_ms: Time after which the channel repeats a query on
            connect, even if the node stayed connected.
        query_on_connect_range_ms: Maximum age of the messages that a query on connect
            requests.
        max_message_bytes: Maximum length of a Waku message, the same for all
            participants: a longer message of another participant is unusable. The
            routing layer's limit is 150 KiB.
        meta: `meta` of every sent Waku message, at most 64 bytes. logos-delivery drops
            messages whose `meta` is not `RELIABLE_CHANNEL_META`. This channel accepts
            received messages with any `meta`.
        profile: Profile of the SDS participant. If another option of the channel sets
            the same value, the channel's option applies.
    """

    sync_min_interval_ms: int = 30_000
    retry_interval_ms: int = 30_000
    max_retry_attempts: int = 10
    retrieve_frequency_ms: int = 10_000
    sweep_in_buf_interval_ms: int = 5_000
    query_on_connect: bool = True
    auto_start: bool = True
    process_task_min_elapse_ms: int = 1_000
    causal_history_size: int = 200
    timeout_for_lost_messages_ms: int | None = None
    possible_acks_threshold: int = 2

    segmentation: SegmentationOptions | None = field(
        default_factory=lambda: SegmentationOptions(
            # If the rate limit delays a sender, it may need several epochs (by default
            # 10 minutes each) to send all segments of a large message.
            idle_timeout_ms=_HOUR_MS
        )
    )
    rate_limit: RateLimitOptions | None = None
    retrieval: RetrievalStrategy = RetrievalStrategy.BOTH
    query_on_connect_after_ms: int = 300_000
    query_on_connect_range_ms: int = 30 * _DAY_MS
    sync_multipliers: SyncMultipliers = field(default_factory=SyncMultipliers)
    max_message_bytes: int = 150 * 1024
    meta: bytes = b""
    encryption_scope: EncryptionScope = EncryptionScope.FRAME
    profile: Profile = field(default_factory=Profile)
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Raise ValueError if a value is invalid, before the value is used."""
        at_least = {
            "sync_min_interval_ms": 0,
            "retry_interval_ms": 1,
            "max_retry_attempts": 0,
            "retrieve_frequency_ms": 1,
            "sweep_in_buf_interval_ms": 1,
            "process_task_min_elapse_ms": 0,
            "causal_history_size": 0,
            "timeout_for_lost_messages_ms": 0,
            "possible_acks_threshold": 1,
            "query_on_connect_after_ms": 1,
            "query_on_connect_range_ms": 1,
        }
        check_least(self, at_least)
        if len(self.meta) > MAX_META_BYTES:
            message = (
                f"meta has {len(self.meta)} bytes, but at most {MAX_META_BYTES} are "
                "allowed"
            )
            raise ValueError(message)
        # This call checks `segmentation` and `profile`. Its errors name the invalid
        # option.
        self.fitting_segmentation()

    def fitting_segmentation(self) -> SegmentationOptions | None:
        """Return the segmentation options, with segments short enough for a frame.

        Raises:
            ValueError: A value is invalid for the SDS participant, or even the shortest
                segment does not fit into a frame.
        """
        longest = self.participant_profile().max_content_bytes - HEADER_ROOM_BYTES
        if self.encryption_scope is EncryptionScope.CONTENT:
            longest -= _CONTENT_CIPHER_BYTES
        segmentation = self.segmentation
        if segmentation is None or segmentation.segment_bytes <= longest:
            return segmentation
        return replace(segmentation, segment_bytes=longest)

    def participant_profile(self) -> Profile:
        """Return the profile with which the channel makes its SDS participant.

        In this profile, the participant's timers for retries and sync messages never
        expire. The channel uses its own timers, because only they consider the
        connection and the rate limit.

        Raises:
            ValueError: A value is invalid for the SDS participant.
        """
        lost_after_ms = self.timeout_for_lost_messages_ms or None
        return replace(
            self.profile,
            causal_history_size=self.causal_history_size,
            history_limit=max(self.profile.history_limit, self.causal_history_size),
            lost_after_ms=lost_after_ms,
            repair_retention_ms=_retention_ms(self.profile, lost_after_ms),
            possible_acks_threshold=self.possible_acks_threshold,
            retry_unacknowledged_ms=_NEVER_MS,
            retry_possibly_acknowledged_ms=_NEVER_MS,
            outgoing_limit=max(self.profile.outgoing_limit, self.limits.retries),
            outgoing_bytes_limit=max(
                self.profile.outgoing_bytes_limit, self.limits.retries_bytes
            ),
            missing_limit=self.limits.missing,
            sync_interval_ms=_NEVER_MS,
            max_frame_bytes=self.max_message_bytes - _ENVELOPE_BYTES,
            repair=self.profile.repair and self.retrieval.uses_repair,
        )

    def earlier_participant_profile(self) -> Profile:
        """Return the profile with which releases before 1.2.0 made the participant.

        With another profile, inputs that such a release stored would have other
        results. For example, a message could get another id, and be sent twice.
        """
        return replace(
            self.participant_profile(),
            repair_retention_ms=self.profile.repair_retention_ms,
        )

    @classmethod
    def js_waku(cls) -> ReliableChannelOptions:
        """Return options that behave like `ReliableChannel` in `@waku/sdk` 0.0.36.

        `ReliableChannel` does not split messages. After `ReliableChannel` has sent a
        sync message, it doubles the wait until the next sync message.
        """
        return cls(
            segmentation=None,
            profile=Profile.js_sds(),
            sync_multipliers=SyncMultipliers(sync_sent=2.0),
        )

    @classmethod
    def lip_173(cls) -> ReliableChannelOptions:
        """Return the default options of LIP-173.

        LIP-173 is a later version of RELIABLE-CHANNEL-API.

        `LIP_173_NAMES` contains the event names of LIP-173.
        """
        return cls(
            retry_interval_ms=5_000,
            max_retry_attempts=5,
            causal_history_size=2,
            meta=RELIABLE_CHANNEL_META,
        )


def _retention_ms(profile: Profile, lost_after_ms: int | None) -> int | None:
    """Return how long the participant stores messages for repairs; None for no limit.

    Participants request a missing message until it counts as lost, and all later
    messages wait for it. So the time must be longer than `lost_after_ms`, unless the
    profile's own time is shorter than the profile's `lost_after_ms`, as in
    `Profile.spec()`.
    """
    retention_ms = profile.repair_retention_ms
    if retention_ms is None or retention_ms < (profile.lost_after_ms or 0):
        return retention_ms
    if lost_after_ms is None:
        return None
    return max(retention_ms, lost_after_ms + profile.t_max_ms)
