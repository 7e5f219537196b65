"""Options of a node, for behaviour that 2/MVDS and 4/MVDS-META leave open."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sds_core.mvds.backoff import DEFAULT, Backoff
from sds_core.mvds.payload import ID_BYTES
from sds_core.ranges import check_least, check_most
from sds_core.wire import MAX_VALUE_BYTES


class Mode(StrEnum):
    """How a node sends its own messages to peers (2/MVDS, "Flow").

    - BATCH: the node sends a message without an OFFER, which saves a round trip.
    - INTERACTIVE: the node first offers a message, and sends it on request. This saves
      bytes if the peer already has the message.
    """

    BATCH = "batch"
    INTERACTIVE = "interactive"


class Resolution(StrEnum):
    """What happens to a message whose parents are missing (4/MVDS-META).

    - NONE: the message is delivered, and the missing parents are ignored.
    - EVENTUAL: the message is delivered, and missing parents are requested.
    - CONSISTENT: missing parents are requested, and the message is delivered only after
      all its parents. The same rule applies to each parent.
    """

    NONE = "none"
    EVENTUAL = "eventual"
    CONSISTENT = "consistent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one node.

    Attributes:
        max_sends: Maximum number of times that a record is sent. If the peer still does
            not answer, the record is dropped. None for no limit.
        forward: Whether received messages are offered to the other peers of the group.
            Deployed nodes forward messages, but 2/MVDS does not mention forwarding.
        write_parents: Whether the node's own messages name parents. The parents are the
            group's delivered messages that no stored message names as a parent.
        group_id_bytes: Length of group ids; None for any length. If group ids differ in
            length, two different messages may have the same id. Deployed nodes use 32.
        max_payload_bytes: Maximum length of a sent payload. Waku relays forward
            messages of at most 150 KB.
        max_messages, max_stored_bytes: Maximum number and total size of stored
            messages. The limits apply separately to the node's own messages and to
            messages of other nodes; the oldest message is dropped first.
        max_known_ids: Maximum number of known message ids. If a message with a known id
            arrives, it is acknowledged but not delivered. If the number is exceeded,
            the ids of dropped messages are dropped, oldest first.
        max_requests: Maximum number of REQUEST records for one peer. Requests for
            messages that the node refused earlier also count.
        max_acks: Maximum number of acknowledgements that wait to be sent to one peer;
            further acknowledgements are dropped.
        max_parents: Maximum number of parents of a message; a received message with
            more parents is refused.
        max_waiting: Maximum number of messages that wait for their parents. If more
            messages would wait, the message that has waited longest is delivered
            without its parents.
    """

    mode: Mode = Mode.INTERACTIVE
    backoff: Backoff = DEFAULT
    max_sends: int | None = None
    forward: bool = True
    resolution: Resolution = Resolution.NONE
    write_parents: bool = False
    group_id_bytes: int | None = ID_BYTES
    max_payload_bytes: int = 2**17
    max_messages: int = 10_000
    max_stored_bytes: int = 64 * 2**20
    max_known_ids: int = 100_000
    max_requests: int = 1_000
    max_acks: int = 1_500
    max_parents: int = 100
    max_waiting: int = 1_000

    def __post_init__(self) -> None:
        """Raise ValueError if an option is out of its range."""
        at_least = {
            # A message may take half of a payload (`max_message_bytes`). This half must
            # have room for a body and `max_parents` parents.
            "max_payload_bytes": 2_048 + 80 * self.max_parents,
            "max_messages": 1,
            "max_stored_bytes": self.max_payload_bytes,
            "max_known_ids": 2 * self.max_messages,
            "max_requests": 1,
            "max_acks": 1,
            "max_parents": 0,
            "max_waiting": 0,
            "max_sends": 1,
            "group_id_bytes": 0,
        }
        check_least(self, at_least)
        check_most(self, {"max_payload_bytes": MAX_VALUE_BYTES, "group_id_bytes": 255})

    @property
    def max_message_bytes(self) -> int:
        """Maximum length of a MESSAGE record.

        The maximum is half of `max_payload_bytes`. Acknowledgements take at most the
        other half of a payload.
        """
        return self.max_payload_bytes // 2
