"""A whole mirror, from real nodes to real Kafka, and however it ends."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka.settings import (
    InvalidTopic,
    KafkaSecurity,
    KafkaSettings,
    Protocol,
)
from connectors.waku_rest.connection import NodeSettings
from connectors.waku_rest.mirror import Mirror
from connectors.waku_rest.pacing import Ending
from connectors.waku_rest.settings import Listen, MirrorSettings
from connectors.waku_rest.spool import open_spool
from connectors.waku_rest.writer import FrameWriter
from sds_core.mirror.figures import Loss, MirrorFigures, Source
from sds_core.waku import autosharded_topic
from tests.support.kafka import (
    NOBODY,
    TopicMaker,
    free_port,
    records,
    refused_sockets_stay_open,
)
from tests.support.tls import Authority
from tests.support.waku_node import ConformanceNode, Endpoint, Fault
from tests.support.waku_rest.rig import (
    DEADLINE_S,
    SHARD,
    TOPIC,
    calls,
    message,
    offer,
    until,
    wall_ms,
)
from tests.support.waku_rest.topic import header, is_frame, seqs

pytestmark = pytest.mark.kafka

SECRET = "Bearer s3cret-of-the-node"  # noqa: S105 - of a node of these tests


@pytest.fixture
def node() -> Iterator[ConformanceNode]:
    """A node that is up."""
    with ConformanceNode() as made:
        yield made


Script = Callable[[MirrorFigures], Awaitable[None]]


def mirror(
    state: Path,
    kafka: KafkaSettings,
    script: Script,
    *nodes: ConformanceNode,
    **settings: object,
) -> MirrorFigures:
    """Run a mirror until the script has ended; returns its figures."""
    figures = MirrorFigures()
    short = {"poll_interval_s": 0.02, "store_interval_s": 0.1}
    with open_spool(state, None, "tap") as spool:
        writer = FrameWriter(kafka, 2, spool.observer)
        made = Mirror(
            MirrorSettings(
                tuple(NodeSettings(one.url) for one in nodes),
                {SHARD: ()},
                **short | settings,
            ),
            spool,
            writer,
            figures,
            wall_ms,
        )

        async def run() -> None:
            ending = Ending()
            running = asyncio.create_task(made.run(ending))
            await until(lambda: figures.nodes)
            try:
                await script(figures)
            finally:
                ending.set()
                await running

        try:
            asyncio.run(run())
        finally:
            writer.close()
    return figures


def hearing(figures: MirrorFigures) -> bool:
    """Whether every node was asked and has answered."""
    return all(node.pages[Source.RELAY] for node in figures.nodes.values())


def relaying(node: ConformanceNode, *numbers: int) -> Script:
    """A node relays some messages, and Kafka has them."""

    async def script(figures: MirrorFigures) -> None:
        await until(lambda: hearing(figures))
        offer(node, *map(message, numbers))
        await until(lambda: figures.written == len(numbers))

    return script


def test_numbers_go_on_over_clean_restarts(
    tmp_path: Path, node: ConformanceNode, kafka_topic: TopicMaker
) -> None:
    """No hole, no duplicate, and nothing left in the spool."""
    kafka = kafka_topic(2).settings
    mirror(tmp_path, kafka, relaying(node, 1, 2, 3), node)
    figures = mirror(tmp_path, kafka, relaying(node, 4, 5), node)
    # What the node hears while no mirror runs is in its cache, and in its store.
    offer(node, message(6, wall_ms() - 10_000))

    async def wait_for_it(figures: MirrorFigures) -> None:
        await until(lambda: figures.written == 1)

    last = mirror(tmp_path, kafka, wait_for_it, node)
    found = records(kafka)
    assert seqs(found) == [1, 2, 3, 4, 5, 6]
    assert {header(one, "waku-hash")[2:] for one in found if is_frame(one)} == {
        one.hash.hex() for one in node.offers
    }
    assert {header(one, "observer") for one in found} == {"tap"}
    for one in (figures, last):
        assert sum(one.losses.values()) == 0
        assert (one.spooled, one.spooled_bytes, one.oldest_spooled_ms) == (0, 0, None)


def test_new_mirror_writes_the_requested_past(
    tmp_path: Path, node: ConformanceNode, kafka_topic: TopicMaker
) -> None:
    """Messages of the last 1,000 s are fetched from the store, older ones not."""
    kafka = kafka_topic(2).settings
    for age_s in (60, 600, 3_000):
        node.store_late(message(age_s, wall_ms() - age_s * 1_000), pubsub_topic=SHARD)

    async def script(figures: MirrorFigures) -> None:
        await until(lambda: figures.written == 2)

    figures = mirror(tmp_path, kafka, script, node, backfill_s=1_000.0)
    assert figures.accepted[Source.STORE] == 2
    found = [header(one, "waku-timestamp") for one in records(kafka) if is_frame(one)]
    assert len(found) == 2


def test_kill_during_a_store_query_skips_no_number(
    tmp_path: Path, node: ConformanceNode, kafka_topic: TopicMaker
) -> None:
    """A store can be read again, unlike a page of relay."""
    kafka = kafka_topic(1).settings

    def sent(number: int) -> Script:
        async def script(figures: MirrorFigures) -> None:
            (of_node,) = figures.nodes.values()
            await until(lambda: of_node.swept_ms)
            offer(node, message(number))
            await until(lambda: figures.written == 1)

        return script

    mirror(tmp_path, kafka, sent(1), node, listen=Listen.NONE)
    with suppress(KeyError), open_spool(tmp_path, None, "tap") as spool:
        spool.begin()
        raise KeyError
    figures = mirror(tmp_path, kafka, sent(2), node, listen=Listen.NONE)
    assert seqs(records(kafka)) == [1, 2]
    assert sum(figures.losses.values()) == 0


def test_heartbeats_are_in_order_and_stop_without_a_node(
    tmp_path: Path,
    node: ConformanceNode,
    kafka_topic: TopicMaker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In every partition, with the last number given before."""
    interval_s = 0.2
    monkeypatch.setattr("connectors.waku_rest.mirror.INTERVAL_S", interval_s)
    kafka = kafka_topic(2).settings
    away_ms = 0

    async def script(figures: MirrorFigures) -> None:
        nonlocal away_ms
        await relaying(node, 1, 2)(figures)
        begun_ms = wall_ms()
        await until(lambda: wall_ms() - begun_ms > 1_000)
        await asyncio.to_thread(node.stop)
        away_ms = wall_ms()
        await until(lambda: wall_ms() - away_ms > 1_500)

    mirror(tmp_path, kafka, script, node)
    found = records(kafka)
    for partition in range(2):
        some = [one for one in found if one.partition == partition]
        beats = [one for one in some if not is_frame(one)]
        assert len(beats) >= 2
        assert max(one.timestamp_ms for one in beats) < away_ms + 1_000
        assert [one.timestamp_ms for one in some] == sorted(
            one.timestamp_ms for one in some
        )
        last = 0
        for one in some:
            number = int(header(one, "seq"))
            assert number >= last
            last = number


def test_invalid_topic_ends_the_mirror(
    tmp_path: Path, node: ConformanceNode, kafka_topic: TopicMaker
) -> None:
    """With that error, not with an exception group."""
    kafka = replace(kafka_topic(1).settings, topic="not a topic")

    async def script(figures: MirrorFigures) -> None:
        await until(lambda: hearing(figures))
        offer(node, message(1))
        await until(lambda: figures.last_seq == 1)

    with pytest.raises(InvalidTopic, match="is not a valid topic name"):
        mirror(tmp_path, kafka, script, node, store=False, listen=Listen.RELAY)


@refused_sockets_stay_open
def test_messages_wait_in_order_while_kafka_is_unreachable(
    tmp_path: Path,
    node: ConformanceNode,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They keep the times at which they were received; the log says when it is over."""
    caplog.set_level("INFO", "sds-monitor")
    # Otherwise it might take long until Kafka is tried again.
    monkeypatch.setattr("connectors.waku_rest.pacing.persist.__defaults__", (0.2,))
    port = free_port()
    broker = EmbeddedBroker(tmp_path / "kafka", port=port)
    kafka = KafkaSettings(f"127.0.0.1:{port}", timeout_s=2.0)
    heard_ms = 0

    async def script(figures: MirrorFigures) -> None:
        nonlocal heard_ms
        await until(lambda: hearing(figures))
        for number in range(5):
            offer(node, message(number))
            await until(lambda: figures.last_seq == number + 1)  # noqa: B023 - at once
        await until(lambda: figures.kafka_failures and figures.spooled >= 5)
        assert figures.oldest_spooled_ms is not None
        heard_ms = wall_ms()
        await asyncio.to_thread(broker.start)
        await until(lambda: figures.written == 5)
        await until(lambda: figures.spooled == 0)

    try:
        mirror(tmp_path / "state", kafka, script, node)
        found = [one for one in records(kafka) if is_frame(one)]
    finally:
        broker.stop()
    assert [header(one, "seq") for one in found] == ["1", "2", "3", "4", "5"]
    assert all(one.timestamp_ms <= heard_ms for one in found)
    (again,) = [one.message for one in caplog.records if "again" in one.message]
    told = re.fullmatch(r"Kafka answers again after \d+ s, (\d+) records sent", again)
    assert told is not None
    assert int(told[1]) >= 5


@refused_sockets_stay_open
@pytest.mark.parametrize("name", ["ca_file", "certificate_file"])
def test_messages_wait_while_a_file_for_kafka_is_replaced(
    tmp_path: Path,
    node: ConformanceNode,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    name: str,
) -> None:
    """A certificate that is copied before its key does not belong to the old key."""
    monkeypatch.setattr("connectors.waku_rest.pacing.persist.__defaults__", (0.05,))
    authority = Authority(tmp_path)
    old, new = authority.issue("old.example"), authority.issue("new.example")
    security = KafkaSecurity(
        Protocol.SSL,
        ca_file=str(authority.ca_file),
        certificate_file=str(old.certificate_file),
        key_file=str(old.key_file),
    )
    kafka = replace(NOBODY, timeout_s=0.1, security=security)
    file = Path(getattr(security, name))
    before = file.read_bytes()
    after = b"" if name == "ca_file" else new.certificate_file.read_bytes()

    def said(text: str) -> bool:
        return text in (caplog.messages or [""])[-1]

    async def script(figures: MirrorFigures) -> None:
        await until(lambda: hearing(figures))
        offer(node, message(1))
        await until(lambda: said("cannot be reached"))
        file.write_bytes(after)
        await until(lambda: said(f"{file} ") and said("records wait in the spool"))
        offer(node, message(2))
        await until(lambda: figures.spooled >= 2)
        file.write_bytes(before)
        await until(lambda: said("cannot be reached"))

    mirror(tmp_path / "state", kafka, script, node, store=False)


@contextmanager
def started(
    state: Path, kafka: KafkaSettings, *arguments: str, **environment: str
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The command on its own, and its log; killed in the end if it still runs."""
    log = state.with_suffix(".log")
    words = [sys.executable, "-m", "streaming.cli", "mirror", "--state", str(state)]
    words += ["--bootstrap", kafka.bootstrap, "--topic", kafka.topic]
    words += ["--metrics-port", "0", "--poll-interval", "0.05", *arguments]
    with log.open("wb") as file:
        process = subprocess.Popen(
            words, stdout=file, stderr=file, env=os.environ | environment
        )
    try:
        yield process, log
    finally:
        process.kill()
        process.wait()


def wait_for(condition: Callable[[], object]) -> None:
    """Wait until something holds."""
    asyncio.run(until(condition))


def metrics(log: Path) -> str:
    """What the command exports now; nothing before it says where."""
    found = re.search(r"metrics (http://\S+)", log.read_text())
    return httpx.get(found[1]).text if found else ""


def test_killed_mirror_skips_one_number(
    tmp_path: Path, node: ConformanceNode, kafka_topic: TopicMaker
) -> None:
    """It may just have read a page."""
    kafka = kafka_topic(2).settings
    where = ["--rest", node.url, "--pubsub-topic", SHARD]
    with started(tmp_path / "state", kafka, *where) as (process, log):
        wait_for(lambda: calls(node, Endpoint.RELAY) >= 2)
        offer(node, message(1), message(2))
        wait_for(lambda: "\nsds_mirror_written_total 2.0\n" in metrics(log))
        process.kill()
    figures = mirror(tmp_path / "state", kafka, relaying(node, 3), node)
    assert seqs(records(kafka)) == [1, 2, 4]
    assert figures.losses[Loss.UNCLEAN_START] == 1
    assert len({header(one, "observer") for one in records(kafka)}) == 1


def test_probable_losses_grow_over_restarts(
    tmp_path: Path, node: ConformanceNode
) -> None:
    """A counter that begins at 1 after each kill would never grow for Prometheus."""
    for kills in range(1, 4):
        with suppress(KeyError), open_spool(tmp_path, None, "tap") as spool:
            spool.begin()
            raise KeyError

        async def script(figures: MirrorFigures) -> None:
            await until(lambda: hearing(figures))

        figures = mirror(tmp_path, NOBODY, script, node)
        assert figures.losses == dict.fromkeys(Loss, 0) | {Loss.UNCLEAN_START: kills}


def test_signal_ends_the_mirror_while_node_and_kafka_hang(
    tmp_path: Path, node: ConformanceNode, kafka_topic: TopicMaker
) -> None:
    """The spool is written at the next start; the pending page is a hole."""
    where = ["--rest", node.url, "--pubsub-topic", SHARD, "--observer", "tap"]
    patience = ["--rest-timeout", "1", "--kafka-timeout", "1", "--no-store"]
    state = tmp_path / "state"
    with started(state, NOBODY, *where, *patience) as (process, log):
        wait_for(lambda: calls(node, Endpoint.RELAY) >= 2)
        offer(node, message(1))
        wait_for(lambda: "\nsds_mirror_last_seq 1.0\n" in metrics(log))
        wait_for(lambda: "records wait in the spool" in log.read_text())
        node.spoil(Endpoint.RELAY, Fault(delay_s=30.0))
        offer(node, message(2))
        wait_for(lambda: node.relay_backlog == 0)
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) == 0
    assert "0 frames written, " in log.read_text()
    node.heal()
    kafka = kafka_topic(1).settings

    async def script(figures: MirrorFigures) -> None:
        await until(lambda: hearing(figures))
        offer(node, message(3))
        await until(lambda: figures.written == 2)

    figures = mirror(state, kafka, script, node)
    assert seqs(records(kafka)) == [1, 3]
    # The first mirror found it only when it ended, too late for a scrape.
    assert figures.losses == dict.fromkeys(Loss, 0) | {Loss.PAGE_CUT_OFF: 1}


def test_secrets_are_used_and_never_printed(
    tmp_path: Path, kafka_topic: TopicMaker
) -> None:
    """Over TLS; content topics find their shard; a node that refuses is named."""
    kafka = kafka_topic(1).settings
    authority = Authority(tmp_path)
    certificate = authority.issue("127.0.0.1")
    shard = autosharded_topic(TOPIC, 1, 8)
    with (
        ConformanceNode(authorization=SECRET, certificate=certificate) as node,
        ConformanceNode(authorization="another") as other,
    ):
        where = ["--rest", node.url, "--rest", other.url, "--content-topic", TOPIC]
        trust = ["--rest-ca-file", str(authority.ca_file)]
        secret = {"SDS_MONITOR_REST_AUTHORIZATION": SECRET}
        running = started(tmp_path / "state", kafka, *where, *trust, **secret)
        with running as (process, log):
            wait_for(lambda: calls(node, Endpoint.RELAY) >= 2)
            node.offer(message(1), pubsub_topic=shard)
            node.offer(message(2, topic="/app/1/other/proto"), pubsub_topic=shard)
            wait_for(lambda: "\nsds_mirror_written_total 1.0\n" in metrics(log))
            wait_for(lambda: "check the authorization" in log.read_text())
            shown = metrics(log)
            command = Path(f"/proc/{process.pid}/cmdline").read_text()
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_S) == 0
        said = log.read_text()
    for text in (shown, command, said):
        assert SECRET.split()[1] not in text
    assert other.url in said
    assert f'sds_mirror_node_up{{node="{node.url}"}} 1.0' in shown
    assert f'sds_mirror_node_up{{node="{other.url}"}} 0.0' in shown
    assert "1 frames written, 0 still to write" in said
    (record,) = (one for one in records(kafka) if is_frame(one))
    assert header(record, "pubsub-topic") == shard
