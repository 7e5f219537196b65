"""Traffic of MVDS that a test makes, on its way through digests and views."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from sds_core.mvds.payload import Message, Metadata, Payload, encode, message_id
from sds_core.observer.incidents import GroupIncident
from sds_core.observer.mvds.digest import ShardDigest
from sds_core.observer.mvds.frame import pair_name
from sds_core.observer.mvds.group_events import MvdsMinute
from sds_core.observer.mvds.kind import MVDS
from sds_core.observer.mvds.shard_view import ShardView
from sds_core.observer.mvds.split import SHARDS
from sds_core.observer.mvds.totals import GroupTotals, groups_of, join
from sds_core.observer.record import NO_SEQ, Arrival
from sds_core.observer.settings import DEFAULTS, ObserverSettings

START_MS = 1_700_000_000_000
GROUP = bytes.fromhex("0123456789abcdef") + bytes(24)
GROUP_NAME = "0123456789abcdef"


class Record(NamedTuple):
    """One payload as a tap writes it.

    Attributes:
        at_ms: Record time, milliseconds after `START_MS`.
        sender, receiver: Peer ids.
        value: Bytes of the payload.
        observer, seq: Tap, and its number.
    """

    at_ms: int
    sender: str
    receiver: str
    value: bytes
    observer: str = "tap"
    seq: int = NO_SEQ

    @property
    def frame(self) -> Any:
        """The record, decoded."""
        headers = [("peer", self.sender.encode()), ("to", self.receiver.encode())]
        return MVDS.decode(self.value, headers)


def message(number: int, group: bytes = GROUP, *, ephemeral: bool = False) -> Message:
    """Return a message that differs by its number."""
    metadata = Metadata(ephemeral=True) if ephemeral else None
    return Message(group, number, b"body", metadata)


def message_key(number: int, group: bytes = GROUP) -> bytes:
    """Return the id of the message with this number."""
    return message_id(message(number, group))


def sent(
    at_ms: int,
    sender: str,
    receiver: str,
    *,
    acks: Sequence[int] = (),
    offers: Sequence[int] = (),
    requests: Sequence[int] = (),
    messages: Sequence[int] = (),
    group: bytes = GROUP,
    ephemeral: bool = False,
    observer: str = "tap",
    seq: int = NO_SEQ,
) -> Record:
    """Return a payload whose records are of messages with these numbers."""
    payload = Payload(
        tuple(message_key(one, group) for one in acks),
        tuple(message_key(one, group) for one in offers),
        tuple(message_key(one, group) for one in requests),
        tuple(message(one, group, ephemeral=ephemeral) for one in messages),
    )
    return Record(at_ms, sender, receiver, encode(payload), observer, seq)


@dataclass
class Monitor:
    """All views of MVDS, as the job drives them.

    Attributes:
        partitions: Number of partitions; a pair of peers is in one of them.
        restarts: Whether each view is packed and restored after each batch.
        incidents: Incidents as they are now, by key.
        minutes: Parts of groups, by minute, group and view.
    """

    settings: ObserverSettings = DEFAULTS
    partitions: int = 1
    restarts: bool = False
    views: dict[str, ShardView] = field(default_factory=dict)
    incidents: dict[tuple[str, str], GroupIncident] = field(default_factory=dict)
    minutes: dict[tuple[int, str, str], GroupTotals] = field(default_factory=dict)
    _read: int = 0
    _clocks: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the views."""
        self.views = {str(one): ShardView(self.settings) for one in range(SHARDS)}

    def batch(
        self, records: Iterable[Record], clock_ms: int, chunk: int = 1_000_000
    ) -> None:
        """Read one batch.

        Args:
            records: Payloads in the order of time.
            clock_ms: Admission time, milliseconds after `START_MS`.
            chunk: Number of records of a digest, at most.
        """
        digests = list(self._digests(records, chunk))
        for name, view in self.views.items():
            mine = [decoded for shard, decoded in digests if shard == name]
            for event in view.apply(mine, START_MS + clock_ms):
                if isinstance(event, MvdsMinute):
                    self.minutes[event.minute_ms, event.group, name] = event.totals
                else:
                    self.incidents[event.incident.key] = event
            if self.restarts:
                blob = view.to_blob()
                self.views[name] = ShardView.from_blob(1, blob, self.settings)

    def groups(self) -> Mapping[str, GroupTotals]:
        """Return the figures of all groups, by name."""
        parts: dict[str, list[GroupTotals]] = {}
        for view in self.views.values():
            for name, part in groups_of(view.totals).items():
                parts.setdefault(name, []).append(part)
        return {name: join(found) for name, found in parts.items()}

    def _digests(
        self, records: Iterable[Record], chunk: int
    ) -> Iterable[tuple[str, ShardDigest]]:
        digesters: dict[tuple[int, str], Any] = {}
        lengths: dict[int, int] = {}
        for record in records:
            frame = record.frame
            partition = random.Random(pair_name(frame)).randrange(self.partitions)
            time_ms = START_MS + record.at_ms
            clock_ms = max(time_ms, self._clocks.get(partition, 0))
            self._clocks[partition] = clock_ms
            arrival = Arrival(
                self._read, time_ms, clock_ms, record.observer, record.seq
            )
            self._read += 1
            for name, part in MVDS.split(frame):
                digester = digesters.get((partition, name))
                if digester is None:
                    digester = MVDS.new_digester(partition)
                    digesters[partition, name] = digester
                digester.add(part, record.value, arrival)
            lengths[partition] = lengths.get(partition, 0) + 1
            if lengths[partition] == chunk:
                lengths[partition] = 0
                for key in [key for key in digesters if key[0] == partition]:
                    yield key[1], _travelled(digesters.pop(key).finish())
        for (_, name), digester in digesters.items():
            yield name, _travelled(digester.finish())


def _travelled(digest: ShardDigest) -> ShardDigest:
    """Return the digest as it arrives at the view."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(digest), type=ShardDigest)


def observed(
    records: Iterable[Record],
    clock_ms: int = 0,
    settings: ObserverSettings = DEFAULTS,
) -> Mapping[str, GroupTotals]:
    """Return the figures of groups after one batch.

    Args:
        records: Payloads in the order of time.
        clock_ms: Admission time, milliseconds after `START_MS`.
        settings: Settings of the model.
    """
    monitor = Monitor(settings)
    monitor.batch(records, clock_ms)
    return monitor.groups()
