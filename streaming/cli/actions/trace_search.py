"""Finds the messages to trace: ids in incidents, then their records in the topic."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import click

from connectors.kafka.backward import slices_backward
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.producer import partition_of
from connectors.kafka.settings import KafkaSettings, topic_index
from sds_core.observer.judgement import FrameRecord, judge
from sds_core.observer.kinds import AnyProtocol
from sds_core.observer.protocols import PROTOCOLS
from sds_core.observer.record import DEFAULT_PROTOCOL, MAX_AHEAD_MS, RawRecord
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.observer.settings_table import settings_of, values_of
from sds_core.observer.tracing import Query, Subject
from sds_core.text import did_you_mean, iso_time, printable, shown
from streaming.cli.actions.incident_sources import Incident, kind_of, read_incidents
from streaming.cli.actions.window_ends import find_ends
from streaming.cli.config_file import observer_settings
from streaming.cli.incident_options import IncidentFilter, IncidentSource
from streaming.cli.log import logger
from streaming.cli.trace_options import TraceRequest
from streaming.cli.window_options import ALL_TIMES
from streaming.settings import Window

SEARCH_MS = 24 * 3_600_000
"""If the time of a message is unknown, its id is searched in records that are at most
this much older than the newest record, ms."""

MOST_MESSAGES = 20
"""Maximum number of messages to trace; of more messages, the newest are traced."""

_SLICE_MS = 3_600_000


@dataclass
class Search:
    """A search for messages in a topic, and the messages that it has found so far.

    Attributes:
        query: Ids of the messages, or their sender.
        window: Record times to search.
        protocols: Protocols to which the messages may belong, by name.
        channel: Channel of the messages, if an option or an incident gives it.
        since_ms: When the messages' first incident began, Unix ms; None if no incident
            is known.
        subjects: Found message -> time at which it appeared, Unix ms, in order of time.
        protocol: Protocol of the messages that were found.
        partitions: Partitions in which the messages were found.
        remedy: End of the error message if no message is found: how to search at
            another time.
    """

    request: TraceRequest
    settings: ObserverSettings
    query: Query
    window: Window
    protocols: dict[str, AnyProtocol]
    channel: str | None = None
    since_ms: int | None = None
    subjects: dict[Subject, int] = field(default_factory=dict)
    protocol: AnyProtocol | None = None
    partitions: set[int] = field(default_factory=set)
    remedy: str = "give another --from or --to"

    @property
    def has_all(self) -> bool:
        """Whether the search has found all requested messages.

        If the messages of a sender are requested: whether it has found `MOST_MESSAGES`.
        """
        asked = MOST_MESSAGES if self.query.sender else len(self.query.message_ids)
        return len(self.subjects) >= asked

    def appeared(self) -> Window:
        """Return when the first and the last message appeared, Unix ms."""
        times = self.subjects.values()
        return Window(min(times), max(times))


def begin_search(source: IncidentSource, request: TraceRequest) -> Search:
    """Create a search from the request, and from the incidents of its messages.

    Raises:
        click.ClickException: The source of incidents cannot be read, or has none of
            the requested incidents.
    """
    has_source = source != IncidentSource() or request.incidents
    incidents: list[Incident] = []
    model = DEFAULTS
    if has_source:
        read = read_incidents(
            source, IncidentFilter(request.channel, None, standing=request.incidents)
        )
        incidents = [one for one in read.incidents if _is_meant(one, request)]
        model = read.settings
        if request.incidents and not incidents:
            message = f"there are no {request.what}"
            raise click.UsageError(message)
    # The configuration file overrides the model's settings that the source gives.
    settings = settings_of(values_of(model) | dict(observer_settings()))
    # A message may have several incidents.
    messages = list(dict.fromkeys(one.message_id for one in incidents))
    ids = frozenset(messages[:MOST_MESSAGES])
    if len(messages) > MOST_MESSAGES:
        incidents = [one for one in incidents if one.message_id in ids]
        logger.warning(
            "only the %d messages with the latest incidents are traced",
            MOST_MESSAGES,
        )
    if request.message_id is not None:
        ids |= {request.message_id}
    kind = kind_of(source.views)
    protocols = {
        one.name: one
        for one in PROTOCOLS
        if one.tracing is not None and (not incidents or one.kind is kind)
    }
    query = Query(sender=request.sender) if request.sender else Query(ids)
    begun = Search(request, settings, query, request.window, protocols, request.channel)
    if incidents:
        begun.channel = incidents[0].channel
        set_since(begun, [one.since for one in incidents])
    return begun


def set_since(begun: Search, times_ms: Sequence[int]) -> None:
    """Set the times, Unix ms, at which the messages' incidents began.

    If the search has no limits of time yet, the times of the incidents limit it.
    """
    begun.since_ms = min(times_ms)
    if begun.window == ALL_TIMES:
        # An incident may begin up to a retention window after its message appeared.
        horizon_ms = begun.settings.horizon_ms
        last_ms = max(times_ms) + horizon_ms
        begun.window = Window(begun.since_ms - horizon_ms, last_ms)


def search(
    kafka: KafkaSettings, offsets: TopicOffsets, begun: Search, wall_ms: int
) -> Search:
    """Find the messages in the topic, and return `begun` with the found messages.

    Raises:
        click.UsageError: No searched record names a requested message, or the requested
            id or sender occurs in several channels.
    """
    partitions = offsets.partitions()
    span = _span(kafka.topic, begun, offsets, partitions, wall_ms)
    reader = _Reader(begun, wall_ms)
    for some in _in_turn(partitions, begun):
        # A record of a fast clock may lie before records of the searched times, so the
        # time `span.last_ms` does not give the offset at which the search ends.
        ends = find_ends(kafka, offsets, some, begun.window)
        for records in slices_backward(
            kafka, offsets, ends, span.first_ms, span.last_ms, _SLICE_MS
        ):
            before = reader.matches
            reader.read(records)
            if begun.has_all and reader.matches == before:
                break
        if begun.subjects:
            break
    if not begun.subjects:
        raise click.UsageError(_not_found(begun, span, reader.channels))
    channels = sorted({one.channel for one in begun.subjects})
    if len(channels) > 1:
        named = ", ".join(map(shown, channels[:MOST_MESSAGES]))
        message = f"{begun.request.what} occurs in {named}: give --channel"
        raise click.UsageError(message)
    if len(begun.subjects) > MOST_MESSAGES:
        logger.warning("only the newest %d messages are traced", MOST_MESSAGES)
    in_order = sorted(begun.subjects.items(), key=itemgetter(1))
    begun.subjects = dict(in_order[-MOST_MESSAGES:])
    return begun


class _Reader:
    """Adds to a search the requested messages that it finds in records."""

    def __init__(self, begun: Search, wall_ms: int) -> None:
        self._begun = begun
        self._wall_ms = wall_ms
        self._hashes = {one.encode() for one in begun.query.waku_hashes}
        channel = begun.request.channel
        self._key = None if channel is None else channel.encode()
        self.matches = 0
        self.channels: set[str] = set()

    def read(self, records: Iterable[RawRecord]) -> None:
        """Search some records, which may be in any order."""
        begun = self._begun
        for record in records:
            if record.timestamp_ms not in begun.window:
                continue
            for protocol, subject in self._subjects(record):
                if not subject.channel and begun.protocol not in (None, protocol):
                    # A frame of one protocol may contain the id of another protocol's
                    # message.
                    continue
                self.matches += 1
                known = begun.subjects
                if not subject.channel or Subject("", subject.message_id) in known:
                    subject = self._merged(subject)
                at_ms = record.timestamp_ms
                known[subject] = min(known.get(subject, at_ms), at_ms)
                begun.protocol = protocol
                begun.partitions.add(record.partition)

    def _merged(self, subject: Subject) -> Subject:
        """Return a found message, with its channel if a record so far names it."""
        known = self._begun.subjects
        if subject.channel:
            known[subject] = known.pop(Subject("", subject.message_id))
            return subject
        same = (one for one in known if one.message_id == subject.message_id)
        return next(same, subject)

    def _subjects(self, record: RawRecord) -> Iterator[tuple[AnyProtocol, Subject]]:
        headers = dict(record.headers)
        name = (headers.get("protocol") or DEFAULT_PROTOCOL.encode()).decode("latin-1")
        protocol = self._begun.protocols.get(name)
        if protocol is None or protocol.tracing is None or not record.value:
            return
        tracing, query = protocol.tracing, self._begun.query
        if tracing.is_keyed and record.key is not None:
            if len(self.channels) < _MOST_CHANNELS:
                self.channels.add(record.key.decode(errors="replace"))
            if self._key not in (None, record.key):
                return
        waku_hash = (headers.get("waku-hash") or b"").lower()
        if waku_hash not in self._hashes and not tracing.may_concern(
            record.value, query
        ):
            return
        judged = judge(record, self._wall_ms, self._begun.protocols)
        if not isinstance(judged, FrameRecord):
            return
        for subject in tracing.subjects(judged.frame, judged.headers, query):
            channel = self._begun.request.channel
            if channel is None or subject.channel in ("", channel):
                yield protocol, subject


_MOST_CHANNELS = 1_000
"""Maximum number of channel ids to remember. If the requested channel is not found, the
error message suggests a similar id."""


def _is_meant(incident: Incident, request: TraceRequest) -> bool:
    message_id = request.message_id
    if message_id is None:
        return request.incidents
    return message_id == incident.message_id or message_id.lower() == incident.waku_hash


def _in_turn(partitions: Sequence[int], begun: Search) -> Iterator[list[int]]:
    """Yield the partitions that the channel's key selects, then all other partitions.

    If the channel is unknown, or records have no key, yield all partitions at once.
    """
    channel = begun.channel
    keyed = [one for one in begun.protocols.values() if one.tracing.is_keyed]  # type: ignore[union-attr]
    if channel is None or len(keyed) < len(begun.protocols) == 1:
        yield [*partitions]
        return
    topics = [list(numbers) for _, numbers in groupby(partitions, topic_index)]
    own = [numbers[partition_of(channel.encode(), len(numbers))] for numbers in topics]
    yield own
    if others := [one for one in partitions if one not in own]:
        yield others


class _Span(NamedTuple):
    """Record times to search; `held_ms` is the time of the first record in Kafka."""

    first_ms: int
    last_ms: int
    held_ms: int


def newest_ms(
    offsets: TopicOffsets, partitions: Sequence[int], wall_ms: int
) -> int | None:
    """Return the latest time of a record, Unix ms; None if the topic is empty.

    A record time that is far in the future does not advance the clock of a trace, so
    the result is at most `MAX_AHEAD_MS` after `wall_ms`.
    """
    newest = offsets.newest(partitions).values()
    latest_ms = max((at.timestamp_ms for at in newest), default=None)
    return None if latest_ms is None else min(latest_ms, wall_ms + MAX_AHEAD_MS)


def _span(
    topic: str,
    begun: Search,
    offsets: TopicOffsets,
    partitions: Sequence[int],
    wall_ms: int,
) -> _Span:
    """Return the record times to search, limited to those that the topic contains."""
    held = offsets.first_at_or_after(partitions, 0).values()
    newest = newest_ms(offsets, partitions, wall_ms)
    if not held or newest is None:
        message = f"topic {topic} contains no record"
        raise click.UsageError(message)
    held_ms = min(one.timestamp_ms for one in held)
    window = begun.window
    last_ms = min(window.last_ms, newest)
    first_ms = window.first_ms
    if first_ms == ALL_TIMES.first_ms:
        first_ms = last_ms - (_SLICE_MS if begun.query.sender else SEARCH_MS)
    # The first record may be from a fast clock, and later than the searched times.
    return _Span(min(max(first_ms, held_ms), last_ms), last_ms, held_ms)


def _not_found(begun: Search, span: _Span, channels: set[str]) -> str:
    request = begun.request
    since_ms = begun.since_ms
    if (begun.window.last_ms if since_ms is None else since_ms) < span.held_ms:
        known = f" ({iso_time(since_ms)})" if since_ms else ""
        return (
            f"Kafka holds nothing before {iso_time(span.held_ms)} any more: "
            f"{request.what} is older{known}"
        )
    of = ""
    if request.channel is not None:
        of = f" of channel {printable(request.channel)}"
        if request.channel not in channels:
            of += did_you_mean(request.channel, channels)
    remedy = begun.remedy
    if span.first_ms == span.held_ms and span.last_ms < begun.window.last_ms:
        remedy = "Kafka holds nothing before, so check the id"
    return (
        f"no record{of} from {iso_time(span.first_ms)} to {iso_time(span.last_ms)} "
        f"names {request.what}: {remedy}"
    )
