"""The sides of an audit, without the command."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.kafka.mirrored import Mirrored
from connectors.kafka.settings import KafkaSecurity, Protocol, RecordsLost
from connectors.storage.database import StorageUnreadable
from connectors.storage.prolly import SqliteTree
from connectors.sync_tcp.address import Address
from connectors.sync_tcp.client import Peer, Synchronised
from connectors.sync_tcp.server import SyncServer
from connectors.waku_rest.connection import NodeSettings
from connectors.waku_rest.pacing import Ending
from sds_core.audit.figures import AuditFigures
from sds_core.audit.mirrored import MirroredMessage
from sds_core.prolly.batched.client import BatchedClient
from sds_core.prolly.batched.server import BatchedServer
from sds_core.prolly.hashing import DEFAULT_FAN_OUT
from sds_core.prolly.item import TAIL_TIMESTAMP_NS, Item
from sds_core.prolly.outcome import Client
from sds_core.prolly.proto import batched_sync_pb2 as pb
from sds_core.prolly.tree import ProllyTree
from sds_core.waku import WakuMessage
from streaming.cli.actions import audit, audit_serve
from streaming.cli.actions.audit import _Audit
from streaming.cli.actions.audit_serve import MirrorIndex
from streaming.cli.actions.audit_sides import Copied, Differences, PeerSide, StoreSide
from streaming.cli.exit_codes import Failed
from streaming.cli.output import wall_ms
from streaming.cli.window_options import NS_PER_MS, AuditSpan
from tests.support.audit.mirrors import (
    CONTENT_TOPIC,
    PUBSUB_TOPIC,
    START_NS,
    sent_messages,
)
from tests.support.kafka import NOBODY
from tests.support.tls import Authority
from tests.support.waku_node import ConformanceNode
from tests.support.waku_rest.rig import until


def test_messages_that_a_mirror_skips_are_fetched_once() -> None:
    """A shard may have far more other traffic than SDS; what is missing stays so."""
    (sent,) = sent_messages(1)
    others = [
        WakuMessage(b"not SDS", CONTENT_TOPIC, START_NS + number) for number in range(3)
    ]
    lacking = sent.hash

    async def twice(url: str) -> list[Differences]:
        side = StoreSide([NodeSettings(url)], {PUBSUB_TOPIC: ()})
        found = []
        for _ in range(2):
            compared = await side.compare(Mirrored(), START_NS, START_NS + 10)
            found.append(compared)
            copied = await side.copy(compared.missing_here)
            assert [one.message.message_hash for one in copied] == [lacking]
        return found

    with ConformanceNode() as node:
        for message in (sent.message, *others):
            node.store_late(message, pubsub_topic=PUBSUB_TOPIC)
        first, second = asyncio.run(twice(node.url))
    assert (len(first.missing_here), first.there) == (4, 4)
    assert (second.missing_here, second.there) == ([lacking], 1)


def test_repeated_audit_survives_that_certificates_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those for Kafka and those for the node; a later comparison has them again."""
    of_node = Authority(tmp_path).ca_file
    of_kafka = of_node.rename(tmp_path / "kafka.pem")
    Authority(tmp_path)
    security = KafkaSecurity(Protocol.SSL, ca_file=str(of_kafka))
    kafka = replace(NOBODY, timeout_s=0.1, security=security)
    figures, ending = AuditFigures(), Ending()

    async def run(side: StoreSide) -> None:
        compared = _Audit(kafka, side, AuditSpan(1, 2, 1, 0), fix=False)
        repeating = asyncio.create_task(compared._repeat(figures, 0.01, ending, ""))  # noqa: SLF001
        await until(lambda: "Kafka at" in figures.error or repeating.done())
        before = of_kafka.read_bytes()
        of_kafka.write_bytes(b"")
        await until(lambda: str(of_kafka) in figures.error or repeating.done())
        of_kafka.write_bytes(before)
        await until(lambda: "Kafka at" in figures.error or repeating.done())
        monkeypatch.setattr(audit, "read_mirrored", lambda *_: Mirrored())
        await until(lambda: figures.result or repeating.done())
        before = of_node.read_bytes()
        of_node.write_bytes(b"")
        await until(lambda: str(of_node) in figures.error or repeating.done())
        of_node.write_bytes(before)
        await until(lambda: not figures.error or repeating.done())
        ending.set()
        await repeating

    with ConformanceNode() as node:
        settings = NodeSettings(node.url, ca_file=of_node)
        asyncio.run(run(StoreSide([settings], {PUBSUB_TOPIC: ()})))


@pytest.mark.parametrize("from_ms", [0, 253_402_300_799_000])
def test_a_time_after_that_of_any_message_can_be_compared(from_ms: int) -> None:
    """Times of messages end in 2262, but an operator may name the year 9999."""
    span = AuditSpan(from_ms, 253_402_300_799_999, 1, 0)
    start_ns, end_ns = span.bounds_ns(0)
    assert (start_ns == 1) is (from_ms == 0)
    assert start_ns < end_ns == TAIL_TIMESTAMP_NS
    client = BatchedClient(ProllyTree(), os.urandom, start_ns, end_ns)
    for frame in client.start():
        for answer in BatchedServer(ProllyTree()).receive(frame):
            client.receive(answer)
    assert client.outcome == ([], [])


class LyingPeer(Peer):
    """A peer that names other times of messages than in the synchronisation."""

    async def synchronise(self, client: Client) -> Synchronised:
        """Have one message that nobody else has."""
        for frame in client.start():
            for answer in BatchedServer(ProllyTree([Item(5, b"x" * 32)])).receive(
                frame
            ):
                client.receive(answer)
        assert client.outcome is not None
        return Synchronised(client.outcome, 1, 0, 0)

    async def records(self, message_hashes: Sequence[bytes]) -> list[pb.Record]:
        """Lie about the time."""
        return [
            pb.Record(
                message_hash=one,
                headers=[
                    pb.Header(name="waku-hash", value=b"0x" + one.hex().encode()),
                    pb.Header(name="waku-timestamp", value=b"6"),
                ],
            )
            for one in message_hashes
        ]


def test_record_with_another_time_than_was_compared_is_not_copied() -> None:
    """It would be missing again in the next audit, and be copied again."""

    async def run() -> Sequence[Copied]:
        side = PeerSide(LyingPeer(Address("127.0.0.1", 1)), "peer")
        differences = await side.compare(Mirrored(), 1, 10)
        return await side.copy(differences.missing_here)

    (copied,) = asyncio.run(run())
    assert (copied.message.timestamp_ns, copied.value) == (5, None)


def test_retention_during_the_first_read_does_not_end_audit_serve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next read begins at the first record that Kafka still has.

    Peers are served only after all records were read.
    """
    reads: list[int] = []
    served_after: list[int] = []
    monkeypatch.setattr("click.echo", lambda _: served_after.append(len(reads)))

    class Index(MirrorIndex):
        def refresh(self) -> bool:
            reads.append(len(reads))
            if len(reads) == 1:
                raise RecordsLost("t", 0, 1, 5)
            return len(reads) < 4

    async def run(thread: ThreadPoolExecutor) -> None:
        index = await asyncio.wrap_future(
            thread.submit(Index, NOBODY, tmp_path / "tree", 7)
        )
        ending = Ending()
        server = SyncServer(lambda: index.tree, lambda _: ())
        serving = audit_serve._serve(  # noqa: SLF001
            server, Address("127.0.0.1", 0), index, thread, ending, ""
        )
        task = asyncio.create_task(serving)
        await until(lambda: len(reads) >= 5 or task.done())
        ending.set()
        await task
        await asyncio.wrap_future(thread.submit(index.close))

    with ThreadPoolExecutor(1) as thread:
        asyncio.run(run(thread))
    assert served_after == [4]


def test_an_audit_that_can_compare_nothing_yet_is_not_complete() -> None:
    """All messages from --from on are younger than --settle."""
    now_ms = wall_ms()
    span = AuditSpan(now_ms, None, 3_600, 60)
    compared = _Audit(NOBODY, StoreSide([], {}), span, fix=False)
    with pytest.raises(Failed, match="nothing can be compared yet"):
        compared.once(as_json=False)
    start_ns, end_ns = span.bounds_ns(now_ms + 60_001)
    assert end_ns - start_ns == NS_PER_MS


def test_messages_from_far_in_the_future_are_not_indexed(tmp_path: Path) -> None:
    """They would never grow old enough to be removed."""
    now_ms, day_ms = wall_ms(), 86_400_000
    ages_days = {b"old": 8, b"recent": 1, b"early": -1, b"future": -365}
    messages = {}
    for name, age_days in ages_days.items():
        item = Item((now_ms - age_days * day_ms) * NS_PER_MS, name.ljust(32))
        messages[item.message_hash] = MirroredMessage(item, 0, 0, "", "", False, "")
    with closing(MirrorIndex(NOBODY, tmp_path / "tree", keep_days=7)) as index:
        start = audit_serve._Position("id", {})  # noqa: SLF001
        index._add(Mirrored(messages), now_ms, start)  # noqa: SLF001
        indexed = [item.message_hash.strip() for item in index.tree]
    assert indexed == [b"recent", b"early"]


@pytest.mark.parametrize(
    "note", [b'{"topic"', b"\xff", b"[]", b"{}", b'{"topic":"id","offsets":{"x":1}}']
)
def test_damaged_position_is_named(note: bytes, tmp_path: Path) -> None:
    """With the file, as other damage that SQLite does not notice."""
    path = tmp_path / "tree.sqlite"
    with closing(SqliteTree(path, DEFAULT_FAN_OUT)) as stored:
        stored.store(stored.tree, notes={"position": note})
    with (
        closing(MirrorIndex(NOBODY, path, keep_days=7)) as index,
        pytest.raises(StorageUnreadable, match="position in the topic is damaged"),
    ):
        index.refresh()
