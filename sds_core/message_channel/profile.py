"""Options for behaviour that SDS leaves open or that differs between implementations.

`Profile()` is designed to lose no message. `Profile.spec()` has the values of SDS and
the SDS-R guide, `Profile.js_sds()` has the values of js-waku's `@waku/sds`, and
`Profile.nim_sds()` has the values of nim-sds. The comments on the options describe how
js-waku and nim-sds differ from the defaults. To change options, apply
`dataclasses.replace` to one of these profiles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from sds_core.ranges import check_least, check_most
from sds_core.repair_timing import RepairHash
from sds_core.wire import (
    DEFAULT_PARAMETERS,
    MAX_ID_CHARACTERS,
    MAX_VALUE_BYTES,
    BloomParameters,
    Dialect,
)
from sds_core.wire.bloom import MAX_K, MAX_M_BITS


class LamportRule(StrEnum):
    """How a participant's Lamport timestamp increases.

    - COUNT: The timestamp starts at the Unix time, and increases by 1 with each sent
      frame. If a delivered message has a higher timestamp, the participant adopts this
      timestamp (SDS, "Send Message", "Deliver Message").
    - FOLLOW_CLOCK: Like COUNT, but the timestamp of a sent frame is at least the
      current Unix time (js-waku).
    - TICK: Like FOLLOW_CLOCK, but each received frame also increases the timestamp: to
      1 more than the higher of our timestamp and the frame's timestamp (nim-sds).
    """

    COUNT = "count"
    FOLLOW_CLOCK = "follow clock"
    TICK = "tick"


class LogOrder(StrEnum):
    """How the local log is ordered.

    - LAMPORT: in order of (lamport, message id) (SDS, "Resolve Conflicts"; js-waku).
    - ARRIVAL: in order of delivery (nim-sds).
    """

    LAMPORT = "lamport"
    ARRIVAL = "arrival"


class AfterRequest(StrEnum):
    """What happens to a repair request after one of our frames carried it.

    - ASK_AGAIN: The request waits until T_req + T_max. If the message is still missing
      at T_req + T_max, the request is queued again. If another participant requests
      the message, our request waits until T_max after the other participant's request.
    - YIELD: The request is dropped at T_req + T_max, or earlier if another participant
      requests the message. When a later causal history names the missing message, the
      request is queued again (SDS-R guide, "When RECEIVING", 3a).
    - ONCE: The request is not sent again, but stays in the buffer until the message
      arrives, or until another participant requests the message (js-waku).
    - FORGET: The request is dropped immediately. When a later causal history names the
      missing message, the request is queued again (nim-sds).
    """

    ASK_AGAIN = "ask again"
    YIELD = "yield"
    ONCE = "once"
    FORGET = "forget"


class Eviction(StrEnum):
    """Which entry a full repair buffer drops: the one that is due first, or due last.

    If a full buffer of our requests has requests that we or others have sent, the
    buffer drops one of these.
    """

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The options of one participant. Times are in ms, sizes in entries or bytes."""

    dialect: Dialect = Dialect.SPEC

    # Lamport timestamp. SDS requires the Unix time in nanoseconds as an int32, which is
    # too small. js-waku and nim-sds use 64 bits: js-waku counts milliseconds, and
    # nim-sds counts seconds. SDS defines the rule COUNT. With COUNT, a received message
    # raises a participant's timestamp only when the message is delivered. While all
    # received messages wait for dependencies, the timestamp stays low. If the
    # participant then sends a message, the message sorts early in the logs of other
    # participants. A causal history has only the last entries of a log, so no causal
    # history names the message.
    lamport_rule: LamportRule = LamportRule.FOLLOW_CLOCK
    lamport_unit_ms: int = 1
    # If the timestamp of a message is ahead of our clock by more than this limit, the
    # message is ignored, so one participant with a wrong clock does not affect the
    # whole channel. With None, the limit is a century. SDS has no limit: a participant
    # adopts every higher timestamp that it receives.
    lamport_max_ahead_ms: int | None = None

    # Local log.
    log_order: LogOrder = LogOrder.LAMPORT
    log_limit: int = 10_000  # ids; a full log drops its first id
    # Maximum number of entries in the causal history of a sent frame. SDS recommends 2,
    # js-waku sends 200, and nim-sds sends 10. If no received causal history names a
    # lost message, the participant never notices the loss.
    causal_history_size: int = 20

    # Bloom filter. If the filter has more ids than `bloom_rollover_ids`, it is rebuilt
    # from the newest `bloom_kept_ids` ids. In nim-sds, these two numbers are 1.2 and
    # 0.8 times the filter's capacity. js-waku never rebuilds the filter
    # (`bloom_rollover_ids` is None).
    bloom: BloomParameters = DEFAULT_PARAMETERS
    bloom_rollover_ids: int | None = 10_000
    bloom_kept_ids: int = 5_000
    # Size of the rebuilt filter. With None, the rebuilt filter has the size of `bloom`.
    # The dialect `spec` requires None, because a receiver expects that all filters have
    # the same size. nim-sds uses 1.2 times the capacity of `bloom`.
    bloom_rolled: BloomParameters | None = None

    # A message is acknowledged when this number of received filters hold the message.
    # With None, filters never acknowledge a message. While fewer other participants
    # than this number are known, all filters count. Otherwise, only one filter of each
    # participant counts, because later filters of the same participant have the same
    # false positives. js-waku always counts all filters. nim-sds requires one filter.
    possible_acks_threshold: int | None = 2
    # If True, and if the number of known other participants is below the threshold,
    # this number replaces the threshold, and only one filter of each participant
    # counts.
    possible_acks_capped: bool = False
    # If a filter's false-positive rate is above this limit, the filter does not count.
    # Several such filters are not better evidence than one, because all filters of a
    # channel hold nearly the same ids, and so have the same false positives. With None,
    # the limit is the error rate in `bloom`. js-waku and nim-sds have no limit.
    # `js_sds()` and `nim_sds()` have the limit 0.05, because a filter whose bits are
    # all set would acknowledge every message.
    possible_acks_max_false_positive_rate: float | None = None

    # Outgoing buffer. In js-waku and in nim-sds, the time until a retry is the same for
    # unacknowledged and for possibly acknowledged messages.
    retry_unacknowledged_ms: int = 30_000
    retry_possibly_acknowledged_ms: int = 60_000
    max_retries: int = 10
    outgoing_limit: int = 1_000  # a full buffer drops its oldest message
    # Maximum total bytes of the frames in the buffer. By default, the buffer has room
    # for 128 frames of the maximum length.
    outgoing_bytes_limit: int = 32 * 2**20

    # Incoming buffer. If this option is True, a dependency is already met if it is in
    # the incoming buffer (js-waku). Otherwise, it is met only if it is in the local log
    # (SDS).
    buffered_meets_dependencies: bool = False
    # Time after which a missing dependency counts as lost. With None, messages wait for
    # a missing dependency until a buffer is full.
    lost_after_ms: int | None = 600_000
    # A full buffer delivers its oldest message early. The missing dependencies of this
    # message stay missing.
    incoming_limit: int = 1_000
    incoming_bytes_limit: int = 32 * 2**20  # as outgoing_bytes_limit
    missing_limit: int = 10_000  # if exceeded, the oldest entry counts as lost

    # Limits on the frames of other participants.
    history_limit: int = 500  # entries of one causal history
    id_limit: int = 256  # characters of a message or participant id
    hint_limit: int = 4_096  # bytes of a retrieval hint; a longer hint is ignored
    max_frame_bytes: int = 262_144

    # A sync message is due after (share + random()) x interval x a factor. `share` is
    # `sync_least_share`; sync.py explains the factor. With the share 0, as in js-waku,
    # a random time can be nearly 0, so a large group always has a participant whose
    # sync message is due soon. With the share None, a sync message is due after each
    # interval, regardless of what other participants send (nim-sds).
    sync_interval_ms: int = 30_000
    sync_least_share: float | None = 1.0
    # Sync messages of other participants delay our sync message, but at most until
    # (time of our last frame) + `sync_put_off_limit` x interval x (number of
    # participants). Received content can make our sync message earlier, but not later.
    # With None, received content can also delay our sync message, and the delay has no
    # limit (js-waku). With 3, nearly every participant sends a sync message before its
    # delay reaches the limit, so participants seldom reach the limit together and send
    # at the same time.
    sync_put_off_limit: int | None = 3
    # While repair requests wait for a frame that carries them, the time until our next
    # sync message is multiplied by this factor (js-waku).
    sync_requests_factor: float = 0.3

    # SDS-R.
    repair: bool = True
    repair_hash: RepairHash = RepairHash.SHA256
    t_min_ms: int = 30_000
    t_max_ms: int = 120_000
    # Number of response groups. With None, the number is max(1, n // 128), where n is
    # 1 plus the number of other participants that sent a frame within the last
    # `participant_forgotten_after_ms`.
    response_groups: int | None = None
    participant_forgotten_after_ms: int = 3_600_000
    # If exceeded, the participant with the oldest last frame is dropped.
    participants_limit: int = 10_000
    requests_per_message: int = 3
    # Maximum number of requests that are read from a received frame. With None, all
    # requests are read, as the SDS-R guide requires. In the guide, in js-waku and in
    # nim-sds, a frame carries at most 3 requests. Without a limit, one hostile frame of
    # 20 kB could request all stored messages.
    requests_taken_per_message: int | None = 10
    # Maximum number and total bytes of our answers in one sweep period
    # (`repair_sweep_ms`). The default bytes correspond to 52 kB per second. Further
    # answers are sent in later periods, unless other participants send them first.
    answers_per_sweep: int = 9
    answer_bytes_per_sweep: int = 262_144
    repair_buffer_limit: int = 1_000
    repair_eviction: Eviction = Eviction.EARLIEST
    after_request: AfterRequest = AfterRequest.ASK_AGAIN
    repair_sweep_ms: int = 5_000
    # Time for which we store a message, to answer repair requests. Other participants
    # request a missing message until it counts as lost, so this time must be longer
    # than `lost_after_ms`. In the SDS-R guide, this time is T_max, which is too short.
    repair_retention_ms: int | None = 720_000
    repair_retained_limit: int = 1_000  # messages; if exceeded, the oldest is dropped
    repair_retained_bytes_limit: int = 32 * 2**20  # as outgoing_bytes_limit

    def __post_init__(self) -> None:
        """Raise ValueError if a value would cause an error later."""
        at_least = {
            "lamport_unit_ms": 1,
            "log_limit": 1,
            "causal_history_size": 0,
            "bloom_kept_ids": 1,
            "retry_unacknowledged_ms": 1,
            "retry_possibly_acknowledged_ms": 1,
            "max_retries": 0,
            "outgoing_limit": 1,
            "incoming_limit": 1,
            "missing_limit": 1,
            "history_limit": self.causal_history_size,
            "id_limit": 64,
            "hint_limit": 0,
            "max_frame_bytes": 4 * self._overhead_bytes() // 3,
            "participant_forgotten_after_ms": 0,
            "participants_limit": 1,
            "sync_requests_factor": 0,
            "sync_interval_ms": 1,
            "t_min_ms": 0,
            "t_max_ms": self.t_min_ms + 1,
            "requests_per_message": 1,
            "answers_per_sweep": 1,
            "answer_bytes_per_sweep": 1,
            "repair_buffer_limit": 1,
            "repair_sweep_ms": 1,
            "repair_retained_limit": 1,
            "outgoing_bytes_limit": self.max_frame_bytes,
            "incoming_bytes_limit": self.max_frame_bytes,
            "repair_retained_bytes_limit": self.max_frame_bytes,
        }
        check_least(self, at_least)
        optional = {
            "lamport_max_ahead_ms": 0,
            "sync_least_share": 0,
            "sync_put_off_limit": 1,
            "bloom_rollover_ids": self.bloom_kept_ids,
            "possible_acks_threshold": 1,
            "possible_acks_max_false_positive_rate": 0,
            "lost_after_ms": 1,
            "response_groups": 1,
            "requests_taken_per_message": self.requests_per_message,
            "repair_retention_ms": 0,
        }
        check_least(self, optional, " or None")
        # Longer ids and frames, and larger filters in `nim`, could not be decoded.
        most = {"id_limit": MAX_ID_CHARACTERS, "max_frame_bytes": MAX_VALUE_BYTES}
        check_most(self, most)
        if self.dialect is Dialect.NIM:
            most_of_filter = {"k": MAX_K, "m_bits": MAX_M_BITS}
            for filter_ in (self.bloom, self.bloom_rolled or self.bloom):
                check_most(filter_, most_of_filter, " in the dialect 'nim'")
        if self.bloom_rolled is not None and self.dialect is Dialect.SPEC:
            message = (
                "bloom_rolled is only for the dialect 'nim': in the dialect "
                "'spec', all filters have the same size"
            )
            raise ValueError(message)

    @property
    def max_content_bytes(self) -> int:
        """Maximum length of content that always fits into a frame, in bytes.

        In addition to this content, a frame has room for one entry of the causal
        history.
        """
        room = self.max_frame_bytes - self._overhead_bytes() - self._entry_bytes()
        return max(0, room)

    def _overhead_bytes(self) -> int:
        """Return the maximum bytes of a frame without causal history and content."""
        filters = [self.bloom, self.bloom_rolled or self.bloom]
        requests = self.requests_per_message * self._entry_bytes()
        rest = 3 * 4 * self.id_limit + requests + 1_024
        return max(one.length_bytes for one in filters) + rest

    def _entry_bytes(self) -> int:
        """Return the maximum bytes of an entry in a causal history, or of a request."""
        return 2 * 4 * self.id_limit + self.hint_limit + 32

    @classmethod
    def spec(cls) -> Profile:
        """Return the values of SDS and the SDS-R guide; other options are defaults.

        This profile loses more messages than `Profile()`. In the guide, participants
        store a message only for T_max, but most requests for the message arrive after
        this time.
        """
        return cls(
            lamport_rule=LamportRule.COUNT,
            causal_history_size=2,
            requests_taken_per_message=None,
            after_request=AfterRequest.YIELD,
            repair_retention_ms=120_000,
        )

    @classmethod
    def js_sds(cls) -> Profile:
        """Return the options of `@waku/sds`, with the timers of js-waku."""
        profile = cls(
            causal_history_size=200,
            bloom_rollover_ids=None,
            possible_acks_max_false_positive_rate=0.05,
            retry_possibly_acknowledged_ms=30_000,
            sync_least_share=0.0,
            sync_put_off_limit=None,
            buffered_meets_dependencies=True,
            lost_after_ms=None,
            repair_eviction=Eviction.LATEST,
            after_request=AfterRequest.ONCE,
            repair_sweep_ms=10_000,
            repair_retention_ms=None,
            repair_retained_limit=10_000,
        )
        return _with_wide_limits(profile)

    @classmethod
    def nim_sds(cls) -> Profile:
        """Return the default options of nim-sds."""
        profile = cls(
            dialect=Dialect.NIM,
            lamport_rule=LamportRule.TICK,
            lamport_unit_ms=1_000,
            log_order=LogOrder.ARRIVAL,
            log_limit=1_000,
            causal_history_size=10,
            bloom_rollover_ids=12_000,
            bloom_kept_ids=8_000,
            bloom_rolled=BloomParameters(12_000, 0.001),
            possible_acks_threshold=1,
            possible_acks_max_false_positive_rate=0.05,
            retry_unacknowledged_ms=60_000,
            max_retries=5,
            lost_after_ms=None,
            sync_least_share=None,
            sync_put_off_limit=None,
            repair_hash=RepairHash.FARM,
            t_max_ms=300_000,
            response_groups=1,
            after_request=AfterRequest.FORGET,
            repair_retention_ms=None,
        )
        return _with_wide_limits(profile)


def _with_wide_limits(profile: Profile) -> Profile:
    """Raise limits that js-waku and nim-sds lack, to values that have no effect.

    Traffic of these libraries first reaches the limits on the number of entries in
    the buffers.
    """
    return replace(
        profile,
        outgoing_bytes_limit=512 * 2**20,
        incoming_bytes_limit=512 * 2**20,
        requests_taken_per_message=100,
        answers_per_sweep=1_000,
        answer_bytes_per_sweep=512 * 2**20,
        repair_retained_bytes_limit=512 * 2**20,
    )
