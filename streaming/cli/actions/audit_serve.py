"""Follows a mirror's topic, and lets other mirrors compare themselves with it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import click
import msgspec

from connectors.kafka.mirrored import Mirrored, read_between
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.record_source import read_places
from connectors.kafka.settings import (
    KafkaSettings,
    KafkaUnreachable,
    RecordsLost,
    TopicReplaced,
)
from connectors.sockets.listener import AddressUnusable, PortInUse
from connectors.storage.database import StorageError, StorageUnreadable
from connectors.storage.disk import REMEDIES
from connectors.storage.prolly import SqliteTree
from connectors.sync_tcp.address import Address
from connectors.sync_tcp.server import SyncServer
from connectors.untrusted_json import UNREADABLE
from connectors.waku_rest.pacing import Ending
from connectors.web.server import WebServer
from connectors.web.side_apps import create_serving_app
from sds_core.audit.mirrored import Unidentified, mirrored_message
from sds_core.audit.serving_figures import ServingFigures
from sds_core.prolly.hashing import DEFAULT_FAN_OUT
from sds_core.prolly.proto import batched_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree
from sds_core.text import counted
from streaming.cli.exit_codes import Failed
from streaming.cli.log import logger
from streaming.cli.output import wall_ms
from streaming.cli.serving_options import WebAddress
from streaming.cli.signals import run_until_signal
from streaming.cli.window_options import NS_PER_MS

_REFRESH_S = 2.0
"""Time between two reads of new records, seconds."""

_READ_AT_ONCE = 50_000
"""Maximum number of records of a partition that one `MirrorIndex.refresh` reads."""

_DAY_MS = 86_400_000
_PLACE = struct.Struct(">iq")
_POSITION = "position"


class _Position(msgspec.Struct):
    """A position in a topic: the topic's id, and the next offset by partition."""

    topic: str | None
    offsets: dict[int, int]


class MirrorIndex:
    """Index on disk: a topic's messages and the offsets of their records.

    Only one thread may use the index.

    A message is kept until its sender's time is more than `keep_days` ago. Messages
    whose sender's time is more than `keep_days` in the future are omitted, because a
    hostile sender could otherwise fill the index with messages that stay for years.

    Raises:
        StorageError: The file cannot be used.
    """

    def __init__(self, kafka: KafkaSettings, path: Path, keep_days: float) -> None:
        self._kafka = kafka
        self._keep_ms = round(keep_days * _DAY_MS)
        self._stored = SqliteTree(path, DEFAULT_FAN_OUT)

    @property
    def topic(self) -> str:
        """Topic of the messages."""
        return self._kafka.topic

    @property
    def tree(self) -> ProllyTree:
        """Tree of the indexed messages, as of the last `refresh`."""
        return self._stored.tree

    def refresh(self) -> bool:
        """Read new records of the topic, and return whether unread records remain.

        Raises:
            KafkaUnreachable: No broker answered.
            TopicReplaced: The topic was deleted and recreated.
            StorageError: The file cannot be written, or is damaged.
        """
        known = self._position()
        with closing(TopicOffsets(self._kafka)) as offsets:
            topic = offsets.describe()
            ends = offsets.latest(topic.partitions)
            earliest = offsets.earliest(topic.partitions)
        if known is not None and known.topic != topic.id:
            raise TopicReplaced(self._kafka.topic, known.topic or "", topic.id or "")
        position = {} if known is None else known.offsets
        # Retention may have removed the next unread record since the last refresh.
        starts = {p: max(position.get(p, 0), earliest[p]) for p in topic.partitions}
        until = {p: min(ends[p], starts[p] + _READ_AT_ONCE) for p in starts}
        now_ms = wall_ms()
        if any(until[p] > position.get(p, 0) for p in until):
            mirrored = read_between(self._kafka, starts, until)
            self._add(mirrored, now_ms, _Position(topic.id, until))
        self._stored.prune((now_ms - self._keep_ms) * NS_PER_MS)
        return any(ends[p] > until[p] for p in until)

    def records(self, message_hashes: Sequence[bytes]) -> list[pb.Record]:
        """Return the records of these messages that the topic still contains."""
        values = self._stored.values(message_hashes)
        places = [_PLACE.unpack(value) for value in values.values()]
        by_hash = {}
        for record in read_places(self._kafka, places):
            try:
                message = mirrored_message(record)
            except Unidentified:
                continue
            if message is None:
                continue
            headers = [pb.Header(name=n, value=v or b"") for n, v in record.headers]
            by_hash[message.item.message_hash] = pb.Record(
                message_hash=message.item.message_hash,
                key=record.key,
                value=record.value or b"",
                headers=headers,
            )
        return [by_hash[one] for one in message_hashes if one in by_hash]

    def close(self) -> None:
        """Close the file."""
        self._stored.close()

    def _position(self) -> _Position | None:
        """Return the position up to which records are indexed; None if none are."""
        note = self._stored.note(_POSITION)
        if note is None:
            return None
        try:
            return msgspec.json.decode(note, type=_Position)
        except UNREADABLE as error:
            detail = f"the position in the topic is damaged: {error}"
            raise StorageUnreadable(self._stored.path, detail) from error

    def _add(self, mirrored: Mirrored, now_ms: int, position: _Position) -> None:
        keep_ns = self._keep_ms * NS_PER_MS
        fresh = {
            message.item: _PLACE.pack(message.partition, message.offset)
            for message in mirrored.messages.values()
            if abs(message.item.timestamp_ns - now_ms * NS_PER_MS) <= keep_ns
        }
        self._stored.store(
            self.tree.changed(insert=fresh),
            fresh,
            {_POSITION: msgspec.json.encode(position)},
        )


def serve(
    kafka: KafkaSettings,
    state: Path,
    address: Address,
    keep_days: float,
    web: WebAddress,
) -> None:
    """Serve until a signal comes; create the directory `state` if it does not exist.

    Raises:
        click.ClickException: `state`, an address or a port cannot be used, or the disk
            is full or fails.
        OSError: No directory `state` can be created, because of the disk.
    """
    try:
        state.mkdir(0o700, parents=True, exist_ok=True)
        ending, figures = Ending(), ServingFigures()
        with (
            WebServer(create_serving_app(figures), *web) as metrics,
            # Only this thread uses the index, because SQLite allows a connection only
            # in the thread that opened it.
            ThreadPoolExecutor(1) as thread,
        ):
            path = state / "tree.sqlite"
            index = thread.submit(MirrorIndex, kafka, path, keep_days).result()

            def records(hashes: Sequence[bytes]) -> Iterable[pb.Record]:
                return thread.submit(index.records, hashes).result()

            server = SyncServer(
                lambda: index.tree,
                records,
                tls=web.access.tls,
                figures=figures,
                admits=lambda token: web.access.config().admits_peer(token),
            )
            try:
                serving = _serve(server, address, index, thread, ending, metrics.url)
                run_until_signal(ending, serving)
            finally:
                thread.submit(index.close).result()
    except (AddressUnusable, PortInUse) as error:
        raise click.UsageError(str(error)) from error
    except StorageError as error:
        refuse = Failed if error.is_of_disk else click.UsageError
        raise refuse(str(error)) from error
    except TopicReplaced as error:
        message = (
            f"{state} belongs to topic {error.topic} with id {error.known}, but the "
            f"topic was deleted and recreated with id {error.found}: use a new --state"
        )
        raise click.UsageError(message) from error
    except OSError as error:
        if isinstance(error, KafkaUnreachable) or error.errno in REMEDIES:
            raise
        message = f"{state} cannot be used: {error.strerror or error}"
        raise click.UsageError(message) from error


async def _serve(
    server: SyncServer,
    address: Address,
    index: MirrorIndex,
    thread: ThreadPoolExecutor,
    ending: Ending,
    url: str,
) -> None:
    loop = asyncio.get_running_loop()
    has_more = True
    while has_more and not ending.is_set():
        has_more = await _read(loop, thread, index)
    async with server.listening(address) as listening:
        messages = counted(len(index.tree), "message")
        click.echo(
            f"{messages} of {index.topic} served at {listening}   metrics {url}/metrics"
        )
        while not ending.is_set():
            await _refreshed(loop, thread, index)
            server.figures.messages = len(index.tree)
            await ending.pause(_REFRESH_S)


async def _refreshed(
    loop: asyncio.AbstractEventLoop, thread: ThreadPoolExecutor, index: MirrorIndex
) -> None:
    """Read new records; if this fails, the server continues with the known records."""
    try:
        await _read(loop, thread, index)
    except KafkaUnreachable as error:
        logger.warning("%s", error)


async def _read(
    loop: asyncio.AbstractEventLoop, thread: ThreadPoolExecutor, index: MirrorIndex
) -> bool:
    """Read new records; return whether unread records remain."""
    try:
        return await loop.run_in_executor(thread, index.refresh)
    except RecordsLost as error:
        # The next refresh starts at the first record that Kafka has not deleted.
        logger.warning(
            "Kafka's retention deleted records of %s:%d before they were read: the "
            "audit does not compare these records",
            error.topic,
            error.partition,
        )
        return True
