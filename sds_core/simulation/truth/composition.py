"""Which messages participants had received when they composed their frames.

The bloom filter of a frame holds the ids that the frame's sender had received when it
composed the frame. All broadcasts of a message have the same filter.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

from sds_core.message_channel.profile import Profile
from sds_core.simulation.log import Presence, Transmission
from sds_core.wire import (
    DEFAULT_PARAMETERS,
    BloomParameters,
    Dialect,
    FrameKind,
    PartSizes,
)
from sds_core.wire.proto.sds_nim_pb2 import SdsMessage as NimMessage
from sds_core.wire.proto.sds_spec_pb2 import SdsMessage as SpecMessage


def sizes_of(dialect: Dialect, value: bytes) -> PartSizes:
    """Return the size of each part of a frame, in bytes.

    The size of a part is the number of bytes by which the frame shrinks if the part is
    removed. The sizes are correct only if `value` encodes each number in the minimum
    length, as simulated participants do.

    Raises:
        google.protobuf.message.DecodeError: `value` is not a frame of this dialect.
    """
    form = SpecMessage if dialect is Dialect.SPEC else NimMessage
    message = form.FromString(value)

    def taken_out(field: str) -> int:
        before: int = message.ByteSize()
        message.ClearField(field)
        after: int = message.ByteSize()
        return before - after

    fields = ("content", "causal_history", "bloom_filter", "repair_request")
    parts = [taken_out(field) for field in fields]
    return PartSizes._make([*parts, len(value) - sum(parts)])


def capacity_in(
    frames: Iterable[PartSizes], responses: Iterable[PartSizes]
) -> dict[str, Any]:
    """Return how many bytes the frames of a channel have.

    Args:
        frames: part sizes of all frames of the channel.
        responses: part sizes of the frames that answer repair requests.
    """
    # The zeros are necessary because `zip` yields nothing for a channel without frames.
    parts = PartSizes(*map(sum, zip(PartSizes(0, 0, 0, 0, 0), *frames, strict=True)))
    return {
        "bytes": parts._asdict(),
        "repair_bytes": {"request": parts.repair, "response": sum(map(sum, responses))},
    }


_SPEC = Profile.spec()


class Filter(NamedTuple):
    """The ids in a participant's filter at one moment.

    Attributes:
        places: the position, from 0, of each id that the participant added before this
            moment. The mapping may also contain ids that were added later.
        begin: the position of the oldest id in the filter.
        end: one more than the position of the newest id in the filter.
    """

    places: Mapping[str, int]
    begin: int
    end: int
    size: BloomParameters

    def holds(self, message_id: str) -> bool:
        """Return whether the filter holds the id; false positives cannot occur."""
        return self.begin <= self.places.get(message_id, -1) < self.end

    def lacks_some_of(self, other: Filter) -> bool:
        """Return whether this filter lacks an id that `other` holds."""
        is_empty = other.begin == other.end
        if self.places is not other.places:
            # The participant lost its state between the two filters, so the positions
            # are not comparable.
            ids = islice(other.places, other.begin, other.end)
            return not all(map(self.holds, ids))
        holds_all = self.begin <= other.begin and other.end <= self.end
        return not (is_empty or holds_all)

    def false_positive_rate(self) -> float:
        """Return the filter's expected false-positive rate, in [0, 1].

        For n ids, m bits and k hashes per id, the rate is (1 - (1 - 1/m)^(k n))^k.
        """
        k = self.size.k
        bits_drawn = k * (self.end - self.begin)
        return float(-math.expm1(bits_drawn * math.log1p(-1 / self.size.m_bits))) ** k


class ReceivedIds:
    """Ids that a participant received or sent, in order, and the resulting filter."""

    __slots__ = ("_begin", "_kept_ids", "_places", "_profile", "_rollover_ids", "_size")

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._size = profile.bloom
        self._rollover_ids = profile.bloom_rollover_ids
        self._kept_ids = profile.bloom_kept_ids
        self._places: dict[str, int] = {}
        self._begin = 0

    def add(self, message_id: str) -> None:
        """Add an id; if the filter has too many ids, rebuild it from the newest."""
        places = self._places
        places.setdefault(message_id, len(places))
        end = len(places)
        if self._rollover_ids is not None and end - self._begin > self._rollover_ids:
            self._begin = end - self._kept_ids
            self._size = self._profile.bloom_rolled or self._profile.bloom

    def filter(self) -> Filter | None:
        """Return the filter's current content; None if no monitor can read the filter.

        In the specification's dialect, a frame does not contain the size of its filter.
        A monitor assumes the default size, and cannot read a filter of another size.
        """
        if self._profile.dialect is Dialect.SPEC and self._size != DEFAULT_PARAMETERS:
            return None
        return Filter(self._places, self._begin, len(self._places), self._size)


class Named(NamedTuple):
    """An entry of a causal history; `sender` is empty if the entry names no sender."""

    message_id: str
    sender: str


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """Fields of a frame as the frame's sender composed them, without encoded bytes.

    Attributes:
        lamport: Lamport timestamp; 0 if frames of this kind have no timestamp.
        history: entries of the frame's causal history, in the frame's order.
        filter: ids in the frame's filter; None if the frame has no filter, or if no
            monitor can read the filter.
        composed_ms: time at which the sender composed the frame, Unix ms.
    """

    dialect: Dialect
    kind: FrameKind
    message_id: str
    sender: str
    lamport: int
    history: tuple[Named, ...]
    requests: frozenset[str]
    filter: Filter | None
    composed_ms: int
    sizes: PartSizes

    @property
    def has_known_id(self) -> bool:
        """Whether the causal histories of other frames can name this frame."""
        is_nim_sync = self.kind is FrameKind.SYNC and self.dialect is Dialect.NIM
        return self.kind is FrameKind.CONTENT or is_nim_sync

    def is_by_other_than(self, other: Composition) -> bool:
        """Return whether both frames have a known sender, and the senders differ."""
        return "" != self.sender != other.sender != ""


class Compositions:
    """Tracks the ids that participants receive, and returns frames' compositions."""

    def __init__(self) -> None:
        # The keys are channel and participant.
        self._profiles: dict[tuple[str, str], Profile] = {}
        self._received: dict[tuple[str, str], ReceivedIds] = {}
        # The keys are channel, message id, sender and Lamport timestamp.
        self._content: dict[tuple[str, str, str, int], Composition] = {}
        # Equal entries of all histories share one `Named`.
        self._named: dict[Named, Named] = {}

    def joined(self, presence: Presence) -> None:
        """Record that a participant joins or leaves.

        The method stores the participant's profile, because the profile contains the
        limits of the filter. If the participant has no earlier state, the method
        deletes the ids that the participant received before.
        """
        identity = (presence.channel_id, presence.participant)
        self._profiles[identity] = presence.profile
        if presence.is_new:
            self._received.pop(identity, None)

    def received_by(self, channel_id: str, participant: str) -> ReceivedIds:
        """Return the ids that a participant has received in a channel so far."""
        received = self._received.get((channel_id, participant))
        if received is None:
            profile = self._profiles.get((channel_id, participant), _SPEC)
            received = ReceivedIds(profile)
            self._received[channel_id, participant] = received
        return received

    def of(self, transmission: Transmission) -> Composition:
        """Return the composition of the frame that is transmitted.

        All transmissions of a message share one composition.
        """
        frame = transmission.frame
        if not transmission.is_of_message:
            return self._compose(transmission)
        channel_id, lamport = transmission.channel_id, frame.lamport or 0
        identity = (channel_id, frame.message_id, frame.sender_id, lamport)
        known = self._content.get(identity)
        if known is None:
            known = self._content[identity] = self._compose(transmission)
            self.received_by(channel_id, transmission.by).add(frame.message_id)
        return known

    def _compose(self, transmission: Transmission) -> Composition:
        frame = transmission.frame
        received = self.received_by(transmission.channel_id, transmission.by)
        named = (
            Named(entry.message_id, entry.sender_id) for entry in frame.causal_history
        )
        return Composition(
            frame.dialect,
            frame.kind,
            frame.message_id,
            frame.sender_id,
            frame.lamport or 0,
            tuple([self._named.setdefault(entry, entry) for entry in named]),
            frozenset(entry.message_id for entry in frame.repair_request),
            received.filter() if frame.bloom_filter else None,
            transmission.at_ms,
            sizes_of(frame.dialect, transmission.value),
        )
