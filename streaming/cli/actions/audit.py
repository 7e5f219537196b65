"""Compares a mirror with a store or with another mirror, once or repeatedly."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import click

from connectors.kafka.mirrored import read_mirrored
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.producer import TopicRecord, partition_of, write
from connectors.kafka.settings import (
    KafkaSettings,
    KafkaUnreachable,
    RecordsLost,
    TopicMissing,
)
from connectors.sockets.listener import AddressUnusable, PortInUse
from connectors.sockets.tls import reason_of
from connectors.sync_tcp.address import Address, PeerUnreachable
from connectors.sync_tcp.client import Peer
from connectors.waku_rest.connection import BadSettings
from connectors.waku_rest.errors import BadAnswer, NodeError, NodeRefused
from connectors.waku_rest.pacing import Ending
from connectors.waku_rest.store_query import in_parts
from connectors.web.server import WebServer
from connectors.web.side_apps import create_audit_app
from sds_core.audit.figures import AuditFigures
from sds_core.audit.result import AuditedMessage, AuditResult
from sds_core.prolly.errors import SyncError
from sds_core.text import counted, iso_time, printable
from streaming.cli.actions.audit_sides import Copied, PeerSide, Side, StoreSide
from streaming.cli.actions.mirror import node_settings, topics_to_mirror
from streaming.cli.exit_codes import ExitCode, Failed, Unreachable, wrong_use
from streaming.cli.log import logger
from streaming.cli.node_options import NodeOptions, PeerAccess, TrafficOptions
from streaming.cli.output import print_json, wall_ms
from streaming.cli.serving_options import WebAddress, is_loopback
from streaming.cli.signals import run_until_signal
from streaming.cli.window_options import NS_PER_MS, AuditSpan, NothingToCompare

_AHEAD_MS = 60_000
"""An audit also reads the records of this time before the audited period, ms.

If a sender's clock is ahead, the mirror receives a message before the sender's time of
the message.
"""

_REPEATABLE = (
    # A certificate file is being replaced.
    BadSettings,
    KafkaUnreachable,
    NodeError,
    PeerUnreachable,
    RecordsLost,
    SyncError,
    TopicMissing,
)
"""After one of these errors, a repeated audit continues with its next comparison."""


def compare(
    kafka: KafkaSettings,
    nodes: NodeOptions,
    peer: Address | None,
    peer_access: PeerAccess,
    traffic: TrafficOptions,
    span: AuditSpan,
    fix: bool,
    as_json: bool,
    every: float | None,
    address: WebAddress,
) -> None:
    """Compare a mirror with a store or another mirror, once or every `every` s."""
    if bool(nodes.urls) == (peer is not None):
        message = "give either --rest URL for a store, or --peer HOST:PORT for a mirror"
        raise click.UsageError(message)
    if every is not None and (span.from_ms, span.to_ms) != (None, None):
        message = (
            "--every compares the newest messages: give --last, not --from or --to"
        )
        raise click.UsageError(message)
    if peer is None:
        side = _store_side(nodes, traffic)
    else:
        side = peer_side(peer, peer_access, traffic)
    audit = _Audit(kafka, side, span, fix)
    if every is None:
        audit.once(as_json)
    else:
        audit.repeat(every, address)


def _store_side(nodes: NodeOptions, traffic: TrafficOptions) -> Side:
    settings = node_settings(nodes)
    topics = topics_to_mirror(traffic)
    if any("," in topic for topic in traffic.content_topics):
        message = (
            "a store cannot filter by a content topic that contains a comma: give a "
            "topic without commas"
        )
        raise click.UsageError(message)
    return StoreSide(settings, topics)


def peer_side(address: Address, access: PeerAccess, traffic: TrafficOptions) -> Side:
    """Return another mirror as the other side of an audit.

    Raises:
        click.UsageError: A file is missing or cannot be used, the token would be sent
            without encryption, or topics are given. Mirrors can only compare the
            messages of all topics.
    """
    if traffic.pubsub_topics or traffic.content_topics:
        message = (
            "--peer compares all messages of both mirrors: omit --pubsub-topic and "
            "--content-topic"
        )
        raise click.UsageError(message)
    tls, token = _peer_context(access), access.peer_token
    if token is not None and tls is None and not is_loopback(address.host):
        message = "--peer-token would be sent without encryption: give --peer-ca-file"
        raise click.UsageError(message)
    return PeerSide(Peer(address, tls=tls, token=token), str(address))


def _peer_context(access: PeerAccess) -> ssl.SSLContext | None:
    ca_file, certificate_file, key_file = files = access[:3]
    given = [file is not None for file in files]
    if not any(given):
        return None
    if given not in ([True, False, False], [True, True, True]):
        message = (
            "give --peer-ca-file alone, or with both --peer-certificate-file and "
            "--peer-key-file"
        )
        raise click.UsageError(message)
    try:
        context = ssl.create_default_context(cafile=ca_file)
        if certificate_file is not None:
            # Without the empty password, OpenSSL would ask at the terminal for the
            # password of an encrypted key.
            context.load_cert_chain(certificate_file, key_file, "")
    except OSError as error:
        names = ", ".join(str(file) for file in files if file is not None)
        message = (
            f"{names} cannot be used ({reason_of(error)}): check that each file is "
            "PEM; if a certificate is given, check that the key belongs to the "
            "certificate and has no password"
        )
        raise click.UsageError(message) from error
    return context


@dataclass(frozen=True, slots=True)
class _Audit:
    """Compares a mirror with another side.

    With `fix`, messages that the mirror lacks are written to its topic.
    """

    kafka: KafkaSettings
    side: Side
    span: AuditSpan
    fix: bool

    @wrong_use(BadSettings)
    def once(self, as_json: bool) -> None:
        """Audit, and print the result."""
        try:
            result = asyncio.run(self._run())
        except (
            BadAnswer,
            NodeRefused,
            NothingToCompare,
            RecordsLost,
            SyncError,
        ) as error:
            raise Failed(_text(error)) from error
        except (NodeError, PeerUnreachable) as error:
            raise Unreachable(str(error)) from error
        if as_json:
            print_json(_document(result))
        else:
            for line in _lines(result):
                click.echo(line)
        if not result.is_complete:
            raise click.exceptions.Exit(ExitCode.FINDING)

    @wrong_use(AddressUnusable, PortInUse)
    def repeat(self, every_s: float, address: WebAddress) -> None:
        """Audit repeatedly until a signal comes, and serve the findings."""
        figures, ending = AuditFigures(), Ending()
        with WebServer(create_audit_app(figures), *address) as server:
            repeating = self._repeat(figures, every_s, ending, server.url)
            run_until_signal(ending, repeating)

    async def _repeat(
        self, figures: AuditFigures, every_s: float, ending: Ending, url: str
    ) -> None:
        # The line is printed when signals are already handled, because a program that
        # waits for the line may send a signal immediately.
        click.echo(f"metrics {url}/metrics")
        ended = asyncio.create_task(ending.wait())
        while not ending.is_set():
            audit = asyncio.create_task(self._run())
            # A signal must end the command immediately, even if a node does not answer.
            await asyncio.wait((audit, ended), return_when=asyncio.FIRST_COMPLETED)
            if ended.done():
                audit.cancel()
            await asyncio.wait((audit,))
            if not audit.cancelled():
                self._note(audit, figures)
            await ending.pause(every_s)

    def _note(self, audit: asyncio.Task[AuditResult], figures: AuditFigures) -> None:
        try:
            result = audit.result()
        except _REPEATABLE as error:
            figures.failed(_text(error))
            logger.error("the audit failed: %s", _text(error))
            return
        figures.ended(result, wall_ms())
        report = logger.info if result.is_complete else logger.warning
        report("%s", result)

    async def _run(self) -> AuditResult:
        start_ns, end_ns = self.span.bounds_ns(wall_ms())
        since_ms = max(0, start_ns // NS_PER_MS - _AHEAD_MS)
        mirror = await asyncio.to_thread(read_mirrored, self.kafka, since_ms)
        differences = await self.side.compare(mirror, start_ns, end_ns)
        missing_here: list[AuditedMessage] = []
        skipped = remirrored = 0
        for hashes in in_parts(differences.missing_here, self.side.part):
            copied = await self.side.copy(hashes)
            skipped += len(hashes) - len(copied)
            missing_here += [copy.message for copy in copied]
            if self.fix:
                remirrored += await asyncio.to_thread(self._write, copied)
        return AuditResult(
            self.side.name,
            start_ns,
            end_ns,
            differences.here,
            differences.there - skipped,
            sorted(missing_here),
            differences.missing_there,
            mirror.unidentified,
            remirrored,
            mirror.begin_ms,
        )

    def _write(self, copied: Sequence[Copied]) -> int:
        """Write the records to the topic, at the current time; return their number."""
        with closing(TopicOffsets(self.kafka)) as offsets:
            partitions = len(offsets.partitions())
        records = [
            TopicRecord(
                partition_of(copy.key or copy.message.message_hash, partitions),
                wall_ms(),
                copy.key,
                copy.value,
                copy.headers,
            )
            for copy in copied
            if copy.value is not None
        ]
        return write(records, self.kafka)


def _text(error: BaseException) -> str:
    if isinstance(error, RecordsLost):
        return (
            f"{error.topic}:{error.partition} lost records to retention before they "
            "were read: audit later messages"
        )
    return str(error)


def _lines(result: AuditResult) -> Iterator[str]:
    for side, messages in (
        ("missing here", result.missing_here),
        ("missing there", result.missing_there),
    ):
        for message in messages:
            facts = [
                side,
                iso_time(message.timestamp_ns // NS_PER_MS)
                if message.timestamp_ns
                else "-",
                f"0x{message.message_hash.hex()}",
                printable(message.content_topic) or "-",
                printable(message.channel) or "-",
            ]
            yield "  ".join(facts)
    if result.unidentified:
        records = counted(result.unidentified, "record")
        yield f"{records} of the mirror without hash or time: not compared"
    if result.missing_before_begin and not result.is_complete:
        before = counted(result.missing_before_begin, "message")
        begin = iso_time(result.mirror_begin_ms or 0)
        yield (
            f"{before} missing here from before the mirror's first record at {begin}: "
            f"leave them out with --from {begin}, or copy them with --fix"
        )
    yield f"{result.other}: {result}"


def _document(result: AuditResult) -> dict[str, object]:
    return {
        "other": result.other,
        "from_ns": result.start_ns,
        "to_ns": result.end_ns,
        "is_complete": result.is_complete,
        "messages": {"here": result.here, "there": result.there},
        "missing_here": [_message(message) for message in result.missing_here],
        "missing_there": [_message(message) for message in result.missing_there],
        "remirrored": result.remirrored,
        "unidentified_records": result.unidentified,
        "mirror_begin_ms": result.mirror_begin_ms,
        "missing_before_begin": result.missing_before_begin,
    }


def _message(message: AuditedMessage) -> dict[str, object]:
    return {
        "timestamp_ns": message.timestamp_ns,
        "waku_hash": f"0x{message.message_hash.hex()}",
        "pubsub_topic": message.pubsub_topic,
        "content_topic": message.content_topic,
        "channel": message.channel,
    }
