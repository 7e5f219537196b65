"""Options of a node, for what the document leaves open."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from sds_core.mvds.backoff import DEFAULT, Backoff
from sds_core.mvds.payload import ID_BYTES
from sds_core.ranges import check_least
from sds_core.wire import MAX_VALUE_BYTES


class Mode(StrEnum):
    """How a message of ours is sent to a peer (2/MVDS, "Flow").

    BATCH sends it at once: fewer round trips. INTERACTIVE offers it first: fewer bytes
    if the peer holds it already.
    """

    BATCH = "batch"
    INTERACTIVE = "interactive"


class Resolution(StrEnum):
    """What happens to a message whose parents are missing (4/MVDS-META).

    NONE: it is delivered, parents are ignored.
    EVENTUAL: it is delivered, and missing parents are requested.
    CONSISTENT: it is delivered after its parents, which are requested; their parents
    likewise.
    """

    NONE = "none"
    EVENTUAL = "eventual"
    CONSISTENT = "consistent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of one node.

    Attributes:
        mode: Mode of messages that `append` gives no other.
        backoff: When a record is sent again.
        max_sends: A record that was sent so often is given up; None: never.
        forward: Whether received messages are offered to the other peers of the group.
            Deployed nodes do so; the document does not mention it.
        resolution: What happens to a message whose parents are missing.
        write_parents: Whether messages of ours name those messages of the group that no
            other known message names as parent.
        group_id_bytes: Length of the ids of groups; None: any. Ids of messages are
            ambiguous if groups differ in length; deployed nodes use 32.
        max_payload_bytes: Longest payload that is sent. What does not fit is sent in
            the next epoch. Waku relays carry 150 KB.
        max_messages: Messages of ours, and as many of others, that are stored; the
            oldest is forgotten first.
        max_stored_bytes: Bytes of the stored messages, counted likewise.
        max_known_ids: Ids of messages that are recognised as known, so that copies are
            acknowledged but not delivered again; the oldest is forgotten first.
        max_requests: REQUEST records in the state for one peer; further offers of the
            peer are refused until some are answered. As many of its refused messages
            are requested when their group is shared.
        max_acks: Acknowledgements for one peer that wait for the next payload. Further
            ones are left out: the peer sends such a message again.
        max_parents: Parents of a received message, or it is refused; at most as many
            are named by a message of ours.
        max_waiting: Messages that wait for their parents; the oldest is delivered
            without them.
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
        """Raise ValueError if a limit leaves no room for anything, or too much."""
        at_least = {
            # Room for a message with a body and all parents in half of it.
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
        at_most = {"max_payload_bytes": MAX_VALUE_BYTES, "group_id_bytes": 255}
        for option, most in at_most.items():
            if (getattr(self, option) or 0) > most:
                message = f"{option} is {getattr(self, option)}, must be at most {most}"
                raise ValueError(message)

    @property
    def max_message_bytes(self) -> int:
        """Length of the longest MESSAGE record.

        Half of a payload: acknowledgements never fill the other half, so that every
        payload has room for the record that has been due for longest.
        """
        return self.max_payload_bytes // 2
