"""The other side of an audit: stores of Waku nodes, or another mirror."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from connectors.kafka.mirrored import Mirrored
from connectors.sync_tcp.client import Peer
from connectors.waku_rest.connection import NodeSettings
from connectors.waku_rest.intake import incoming_of
from connectors.waku_rest.store_listing import StoreListing
from sds_core.audit.mirrored import Topics, Unidentified, is_selected, mirrored_message
from sds_core.audit.result import AuditedMessage, audited
from sds_core.mirror.figures import Source
from sds_core.mirror.selection import Selection, channel_of
from sds_core.observer.record import RawRecord
from sds_core.prolly.batched.client import BatchedClient
from sds_core.prolly.item import Item
from sds_core.prolly.proto import batched_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree
from sds_core.waku import WakuMessage

_OF_ONE_TAP = frozenset({"observer", "seq", "source"})
"""Headers that a copy of a record omits, because they do not describe the message.

The headers describe how a tap captured the message.
"""


class Differences(NamedTuple):
    """Messages that either side of an audit lacks, and numbers of compared messages.

    `here` is the number of compared messages of the mirror, and `there` is the number
    of the other side. `missing_here` has the hashes of the messages that the mirror
    lacks. `missing_there` has the messages that the other side lacks, in order of time.
    """

    here: int
    there: int
    missing_here: Sequence[bytes]
    missing_there: Sequence[AuditedMessage]


class Copied(NamedTuple):
    """A message that the mirror lacks, and the record to write to the mirror's topic.

    If the other side did not return the message, `value` is None, and no record is
    written.
    """

    message: AuditedMessage
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


class Side(Protocol):
    """The other side of an audit; `part` is the maximum number of hashes per `copy`."""

    name: str
    part: int

    async def compare(
        self, mirror: Mirrored, start_ns: int, end_ns: int
    ) -> Differences:
        """Compare messages whose sender's time is in [start_ns, end_ns), Unix ns."""

    async def copy(self, hashes: Sequence[bytes]) -> Sequence[Copied]:
        """Return the messages with these hashes, except those that a mirror skips.

        A mirror skips a message if it would not write the message to its topic.
        """


class StoreSide:
    """Stores of Waku nodes; a message is missing only if no store has it."""

    part = 500

    def __init__(self, nodes: Sequence[NodeSettings], topics: Topics) -> None:
        self.name = ", ".join(node.url for node in nodes)
        self._listings = [StoreListing(node, topics) for node in nodes]
        self._topics = topics
        self._pubsub_topic_of: dict[bytes, str] = {}
        # Hashes of listed messages that a mirror does not write to its topic. They are
        # kept, so that a repeated audit fetches each of these messages only once.
        self._skipped: set[bytes] = set()

    async def compare(
        self, mirror: Mirrored, start_ns: int, end_ns: int
    ) -> Differences:
        """Compare the mirror's messages with the message hashes that the stores list.

        Raises:
            NodeError: A node cannot be reached, refuses, or gives an invalid answer.
        """
        there: dict[bytes, str] = {}
        for listing in self._listings:
            there |= await listing.hashes(start_ns, end_ns - 1)
        self._pubsub_topic_of = there
        self._skipped &= there.keys()
        here = sorted(
            message
            for message in mirror.messages.values()
            if start_ns <= message.item.timestamp_ns < end_ns
            and is_selected(message, self._topics)
        )
        missing_there = [
            audited(message)
            for message in here
            # Stores keep no ephemeral messages, so these do not count as missing.
            if message.item.message_hash not in there and not message.is_ephemeral
        ]
        missing_here = [
            message_hash
            for message_hash in there
            if message_hash not in mirror.messages and message_hash not in self._skipped
        ]
        count = len(there) - len(self._skipped)
        return Differences(len(here), count, missing_here, missing_there)

    async def copy(self, hashes: Sequence[bytes]) -> Sequence[Copied]:
        """Fetch messages; see `Side.copy`. Raises the same errors as `compare`."""
        left = {each: self._pubsub_topic_of[each] for each in hashes}
        copied: list[Copied] = []
        for listing in self._listings:
            for message_hash, stored in (await listing.messages(left)).items():
                del left[message_hash]
                of_mirror = self._copied(*stored)
                if not of_mirror:
                    self._skipped.add(message_hash)
                copied += of_mirror
        # A store listed these messages, but no store returned them. The mirror lacks
        # them nevertheless.
        copied += [
            Copied(AuditedMessage(0, each, topic)) for each, topic in left.items()
        ]
        return copied

    def _copied(self, pubsub_topic: str, message: WakuMessage) -> list[Copied]:
        channel = channel_of(message.payload)
        content_topics = frozenset(self._topics.get(pubsub_topic, ()))
        if Selection(content_topics).skipped(message, channel) is not None:
            return []
        record = incoming_of(pubsub_topic, message, channel, Source.STORE)
        said = AuditedMessage(
            message.timestamp_ns,
            record.message_hash,
            pubsub_topic,
            message.content_topic,
            channel or "",
        )
        return [Copied(said, record.key, record.value, record.headers)]


class PeerSide:
    """Another mirror."""

    part = 50

    def __init__(self, peer: Peer, name: str) -> None:
        self.name = name
        self._peer = peer
        self._items: Mapping[bytes, Item] = {}

    async def compare(
        self, mirror: Mirrored, start_ns: int, end_ns: int
    ) -> Differences:
        """Compare the message hashes of the mirror with the hashes of the peer.

        Raises:
            PeerUnreachable: The peer is unreachable, or every connection broke before
                the comparison ended.
            SyncError: The peer refuses, or does not follow the protocol for comparing
                trees.
        """
        tree = ProllyTree(
            message.item
            for message in mirror.messages.values()
            if start_ns <= message.item.timestamp_ns < end_ns
        )
        client = BatchedClient(tree, os.urandom, start_ns, end_ns)
        outcome = (await self._peer.synchronise(client)).outcome
        self._items = {item.message_hash: item for item in outcome.only_there}
        missing_there = [
            audited(mirror.messages[item.message_hash]) for item in outcome.only_here
        ]
        there = len(tree) - len(missing_there) + len(outcome.only_there)
        return Differences(len(tree), there, list(self._items), missing_there)

    async def copy(self, hashes: Sequence[bytes]) -> Sequence[Copied]:
        """Fetch records of the peer; raises the same errors as `compare`."""
        copied = {
            record.message_hash: _copied(record, self._items[record.message_hash])
            for record in await self._peer.records(hashes)
        }
        return [
            copied.get(each)
            or Copied(AuditedMessage(self._items[each].timestamp_ns, each))
            for each in hashes
        ]


def _copied(record: pb.Record, item: Item) -> Copied | None:
    """Return a copy of a peer's record.

    Returns None if the headers do not identify the message `item`. With another time,
    the copied message would be missing in each later audit, and be copied again.
    """
    headers = tuple((header.name, header.value) for header in record.headers)
    key = record.key if record.HasField("key") else None
    try:
        message = mirrored_message(RawRecord(0, 0, 0, key, record.value, headers))
    except Unidentified:
        return None
    if message is None or message.item != item:
        return None
    kept = tuple(pair for pair in headers if pair[0] not in _OF_ONE_TAP)
    return Copied(audited(message), key, record.value, (("source", b"replay"), *kept))
