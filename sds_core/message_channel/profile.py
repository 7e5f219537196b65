"""Options for behaviour that SDS leaves open or that differs between implementations.

`Profile()` is designed to lose no message. `Profile.spec()` has the values of SDS and
the SDS-R guide, `Profile.js_sds()` has those of js-waku's `@waku/sds`, and
`Profile.nim_sds()` has those of nim-sds. Comments say how the two libraries differ from
the default. To change options, use `dataclasses.replace` on one of these profiles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from sds_core.ranges import check_least
from sds_core.repair_timing import RepairHash
from sds_core.wire import DEFAULT_PARAMETERS, BloomParameters, Dialect


class LamportRule(StrEnum):
    """How a participant's Lamport timestamp increases.

    - COUNT: The timestamp starts at the Unix time and increases by 1 at each sending.
      If a delivered message has a higher timestamp, the participant adopts it (SDS,
      "Send Message", "Deliver Message").
    - FOLLOW_CLOCK: As COUNT, but a sent timestamp is at least the time of the clock
      (js-waku).
    - TICK: As FOLLOW_CLOCK, but the timestamp also increases by 1 at each reception
      (nim-sds).
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
      the message, our request waits for T_max from then.
    - YIELD: The request is dropped at T_req + T_max, or earlier if another participant
      requests the message. The next history that names the missing message queues the
      request again (SDS-R guide, "When RECEIVING", 3a).
    - ONCE: The request stays in the buffer until the message arrives or another
      participant requests it, but is not sent again (js-waku).
    - FORGET: The request is dropped. The next history that names the missing message
      queues the request again (nim-sds).
    """

    ASK_AGAIN = "ask again"
    YIELD = "yield"
    ONCE = "once"
    FORGET = "forget"


class Eviction(StrEnum):
    """Which entry a full repair buffer drops: the first or the last that is due."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The options of one participant; times in ms, sizes in entries or bytes."""

    dialect: Dialect = Dialect.SPEC

    # Lamport timestamp. SDS requires an int32 in nanoseconds, which is impossible. Both
    # libraries use 64 bits: js-waku counts milliseconds, and nim-sds counts seconds.
    # The rule of SDS is COUNT. With COUNT, a participant's timestamp stays low while
    # all received messages wait for dependencies. A message with a low timestamp sorts
    # early in the logs of others, so no causal history names it.
    lamport_rule: LamportRule = LamportRule.FOLLOW_CLOCK
    lamport_unit_ms: int = 1
    # SDS requires that a participant adopts any higher timestamp that it receives. If a
    # message is further ahead of our clock than this limit, it is ignored, so a single
    # wrong clock does not affect the whole channel. None: a century.
    lamport_max_ahead_ms: int | None = None

    # Local log.
    log_order: LogOrder = LogOrder.LAMPORT
    log_limit: int = 10_000  # ids; a full log drops its first id
    # Maximum number of entries in a sent history: SDS recommends 2, js-waku sends 200,
    # and nim-sds sends 10. If no received history names a lost message, its loss is
    # never noticed.
    causal_history_size: int = 20

    # Bloom filter. If it has more ids than `bloom_rollover_ids`, it is rebuilt from the
    # newest `bloom_kept_ids` ids. In nim-sds, these numbers are 1.2 and 0.8 times the
    # capacity. In js-waku, the filter is never rebuilt (None).
    bloom: BloomParameters = DEFAULT_PARAMETERS
    bloom_rollover_ids: int | None = 10_000
    bloom_kept_ids: int = 5_000
    # Size of the rebuilt filter. With None, the size does not change. The dialect
    # `spec` requires None, because its receivers expect filters of one size. nim-sds
    # uses 1.2 x capacity.
    bloom_rolled: BloomParameters | None = None

    # Number of filters that together acknowledge a message. With None, filters never
    # acknowledge a message. While fewer other participants than this number are known,
    # all filters count. Otherwise, only one filter of each participant counts, because
    # the participant's next filter has the same false positives. js-waku always counts
    # all filters; nim-sds requires one filter.
    possible_acks_threshold: int | None = 2
    # If True, the threshold is never greater than the number of known other
    # participants, and only one filter of each participant counts.
    possible_acks_capped: bool = False
    # If a filter's false-positive rate is above this limit, the filter does not count.
    # More filters do not help: all filters of a channel hold nearly the same ids, so
    # they have the same false positives. With None, the limit is the error rate in
    # `bloom`. js-waku and nim-sds have no limit. Their profiles here have the limit
    # 0.05, because a filter whose bits are all set would acknowledge every message.
    possible_acks_max_false_positive_rate: float | None = None

    # Outgoing buffer. js-waku and nim-sds do not distinguish unacknowledged from
    # possibly acknowledged messages.
    retry_unacknowledged_ms: int = 30_000
    retry_possibly_acknowledged_ms: int = 60_000
    max_retries: int = 10
    outgoing_limit: int = 1_000  # the oldest message is dropped
    # Maximum total bytes of the frames in the buffer: 128 frames of the maximum length.
    outgoing_bytes_limit: int = 32 * 2**20

    # Incoming buffer. In SDS, a dependency is met if it is in the local log. In
    # js-waku, a dependency is also met if it is in the incoming buffer.
    buffered_meets_dependencies: bool = False
    # Time after which a missing dependency counts as lost. With None, messages wait for
    # it while the buffer has room.
    lost_after_ms: int | None = 600_000
    incoming_limit: int = 1_000  # the oldest message is delivered early
    incoming_bytes_limit: int = 32 * 2**20  # as outgoing_bytes_limit
    missing_limit: int = 10_000  # the oldest message is lost

    # Limits on the frames of other participants.
    history_limit: int = 500  # entries of one causal history
    id_limit: int = 256  # characters of a message or participant id
    hint_limit: int = 4_096  # bytes of a retrieval hint; a longer hint is ignored
    max_frame_bytes: int = 262_144

    # A sync message is due after (share + random()) x interval x a factor; sync.py
    # explains the factor. With the share 0, as in js-waku, some participant of a large
    # group always draws a short time. With the share None, a sync message is due
    # after each interval, whatever other participants send (nim-sds).
    sync_interval_ms: int = 30_000
    sync_least_share: float | None = 1.0
    # Sync messages of others delay our sync message, but not beyond this limit: time of
    # our last frame + this factor x interval x number of participants. Received content
    # can make our sync message earlier, but not later. With None, received content can
    # also delay it, and the delay has no limit (js-waku). With the factor 3, nearly
    # every participant sends a sync message before this limit, so the limit seldom
    # makes several participants send at the same time.
    sync_put_off_limit: int | None = 3
    # While repair requests wait for a frame, the time until the next sync message is
    # multiplied by this factor (js-waku).
    sync_requests_factor: float = 0.3

    # SDS-R.
    repair: bool = True
    repair_hash: RepairHash = RepairHash.SHA256
    t_min_ms: int = 30_000
    t_max_ms: int = 120_000
    # With None: max(1, n // 128), if n participants sent a frame lately.
    response_groups: int | None = None
    participant_forgotten_after_ms: int = 3_600_000
    participants_limit: int = 10_000  # the participant silent for longest is dropped
    requests_per_message: int = 3
    # How many requests of a received frame are read. In the guide and in both
    # libraries, a frame carries 3 requests. Without a limit, one hostile frame of 20 kB
    # could request all stored messages. With None, all requests are read, as the guide
    # requires.
    requests_taken_per_message: int | None = 10
    # Maximum number and total bytes of our answers in one sweep period: 52 kB per
    # second. Further answers are sent in later periods, or other participants send them
    # first.
    answers_per_sweep: int = 9
    answer_bytes_per_sweep: int = 262_144
    repair_buffer_limit: int = 1_000
    repair_eviction: Eviction = Eviction.EARLIEST
    after_request: AfterRequest = AfterRequest.ASK_AGAIN
    repair_sweep_ms: int = 5_000
    # A participant requests a missing message until the message counts as lost
    # (`lost_after_ms`), so others must store the message longer. In the guide, they
    # store it for T_max, which is too short.
    repair_retention_ms: int | None = 720_000
    repair_retained_limit: int = 1_000  # messages; the oldest is dropped
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
        if self.bloom_rolled is not None and self.dialect is Dialect.SPEC:
            message = (
                "bloom_rolled is only for the dialect 'nim': in the dialect "
                "'spec', all filters have the same size"
            )
            raise ValueError(message)

    @property
    def max_content_bytes(self) -> int:
        """Maximum length of content that always fits into a frame, in bytes.

        Beside this content, a frame has room for one entry of the causal history.
        """
        room = self.max_frame_bytes - self._overhead_bytes() - self._entry_bytes()
        return max(0, room)

    def _overhead_bytes(self) -> int:
        """Return the maximum bytes of all fields except causal history and content."""
        filters = [self.bloom, self.bloom_rolled or self.bloom]
        requests = self.requests_per_message * self._entry_bytes()
        rest = 3 * 4 * self.id_limit + requests + 1_024
        return max(one.length_bytes for one in filters) + rest

    def _entry_bytes(self) -> int:
        """Return the maximum bytes of an entry in a causal history, or of a request."""
        return 2 * 4 * self.id_limit + self.hint_limit + 32

    @classmethod
    def spec(cls) -> Profile:
        """Return the options of SDS and the SDS-R guide, where these define a value.

        This profile loses more messages than `Profile()`. In the guide, participants
        store messages only for T_max, but most requests arrive later.
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
    """Set the limits that the library lacks to values that have no effect.

    Traffic of the library reaches the limits on numbers of entries first.
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
