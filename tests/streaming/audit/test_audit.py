"""``sds-monitor audit`` against a Waku store and another mirror, with real Kafka."""

from __future__ import annotations

import hashlib
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.audit.mirrors import (
    CONTENT_TOPIC,
    PARTITIONS,
    PUBSUB_TOPIC,
    START_NS,
    STEP_NS,
    Sent,
    sent_messages,
    without,
    write_mirror,
)
from tests.support.cli.command import sds_monitor
from tests.support.kafka import KafkaTopic, TopicMaker, free_port, records
from tests.support.waiting import wait_for
from tests.support.waku_node import ConformanceNode

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

MANY = 200_000
REMOVED = 137
ANY_AGE = {"retention.ms": "-1"}

Mirror = Callable[[Sequence[Sent]], KafkaTopic]


@pytest.fixture
def mirror(kafka_topic: TopicMaker) -> Mirror:
    """A topic with messages, as a mirror writes them."""

    def make(messages: Sequence[Sent]) -> KafkaTopic:
        topic = kafka_topic(PARTITIONS, ANY_AGE)
        write_mirror(topic, messages)
        return topic

    return make


def bounds(count: int) -> list[str]:
    """The options for the times of so many messages."""
    end_ms = (START_NS + count * STEP_NS) // 1_000_000
    return ["--from", str(START_NS // 1_000_000), "--to", str(end_ms)]


def kafka(topic: KafkaTopic) -> list[str]:
    """The options of a topic."""
    settings = topic.settings
    return ["--bootstrap", settings.bootstrap, "--topic", settings.topic]


def audited(*arguments: str, **environment: str) -> tuple[int, dict[str, object]]:
    """Exit code and JSON of an audit."""
    result = sds_monitor("audit", *arguments, "--json", **environment)
    assert result.stdout, result.stderr
    return result.returncode, json.loads(result.stdout)


def hashes(found: object) -> set[bytes]:
    """The hashes of messages in an answer."""
    assert isinstance(found, list)
    return {bytes.fromhex(one["waku_hash"][2:]) for one in found}


@contextmanager
def serving(topic: KafkaTopic, state: Path, *options: str) -> Iterator[str]:
    """A server of a mirror's tree; yields HOST:PORT."""
    command = [sys.executable, "-m", "streaming.cli", "audit", "serve", *kafka(topic)]
    # The messages of these tests are of another year.
    flags = ["--state", str(state), "--sync-port", "0", "--keep-days", "100000"]
    flags += ["--metrics-port", "0", *options]
    with subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, text=True) as one:
        try:
            assert one.stdout is not None
            line = one.stdout.readline()
            found = re.search(r"served at (\S+)", line)
            assert found is not None, line
            yield found[1]
            one.send_signal(signal.SIGTERM)
            assert one.wait(20) == 0
        finally:
            one.kill()


@pytest.mark.long
def test_a_store_shows_exactly_what_a_mirror_of_many_messages_lacks(
    mirror: Mirror,
) -> None:
    """Each removed record is named with time and topic; fixed, nothing is missing."""
    sent = sent_messages(MANY)
    chance = random.Random(7)
    removed = chance.sample(sent, REMOVED)
    late = chance.sample(without(sent, removed), 5)
    topic = mirror(without(sent, removed))
    with ConformanceNode() as node:
        for one in without(sent, late):
            node.store_late(one.message, pubsub_topic=PUBSUB_TOPIC)
        options = (
            *("--rest", node.url, "--pubsub-topic", PUBSUB_TOPIC),
            *bounds(MANY),
            *kafka(topic),
        )
        code, found = audited(*options, "--fix")
        assert (code, found["remirrored"], found["is_complete"]) == (0, REMOVED, True)
        assert hashes(found["missing_here"]) == {one.hash for one in removed}
        assert hashes(found["missing_there"]) == {one.hash for one in late}
        assert found["messages"] == {"here": MANY - REMOVED, "there": MANY - 5}
        named = {
            (one["timestamp_ns"], one["content_topic"], one["channel"])
            for one in found["missing_here"]  # type: ignore[attr-defined]
        }
        assert named == {
            (one.message.timestamp_ns, CONTENT_TOPIC, one.channel) for one in removed
        }

        code, found = audited(*options)
        assert (code, found["missing_here"]) == (0, [])


@pytest.mark.long
def test_another_mirror_shows_exactly_what_a_mirror_of_many_messages_lacks(
    mirror: Mirror, tmp_path: Path
) -> None:
    """Both ways; what is copied is the record itself, and then nothing is missing."""
    sent = sent_messages(MANY, seed=2)
    chance = random.Random(8)
    removed = chance.sample(sent, REMOVED)
    only_here = chance.sample(without(sent, removed), 11)
    here, there = mirror(without(sent, removed)), mirror(without(sent, only_here))
    with serving(there, tmp_path) as peer:
        options = ("--peer", peer, *bounds(MANY), *kafka(here))
        code, found = audited(*options, "--fix")
        assert (code, found["remirrored"]) == (0, REMOVED)
        assert hashes(found["missing_here"]) == {one.hash for one in removed}
        assert hashes(found["missing_there"]) == {one.hash for one in only_here}
        assert {one["channel"] for one in found["missing_here"]} == {  # type: ignore[attr-defined]
            one.channel for one in removed
        }

    # The server goes on from its state, and sees what came meanwhile.
    write_mirror(there, only_here)
    with serving(there, tmp_path) as peer:
        code, found = audited("--peer", peer, *bounds(MANY), *kafka(here))
        assert (code, found["missing_here"], found["missing_there"]) == (0, [], [])


def test_copied_records_have_no_numbers_of_the_other_tap(
    mirror: Mirror, tmp_path: Path
) -> None:
    """They would count as missing numbers of a tap that this mirror never saw."""
    sent = sent_messages(10)
    here, there = mirror(sent[:-2]), mirror(sent)
    config = tmp_path / "web.yml"
    token = hashlib.sha256(b"shared").hexdigest()
    config.write_text(f"peer_tokens: {{here: '{token}'}}")
    with serving(there, tmp_path, "--web-config", str(config)) as peer:
        options = ("--peer", peer, *bounds(10), *kafka(here))
        stranger = sds_monitor("audit", *options)
        assert stranger.returncode == 4
        assert "the other mirror accepts only a valid token" in stranger.stderr
        known = {"SDS_MONITOR_PEER_TOKEN": "shared"}
        code, found = audited(*options, **known)
        assert (code, found["is_complete"], found["remirrored"]) == (1, False, 0)
        code, _ = audited(*options, "--fix", **known)
        assert code == 0
    copied = [
        record
        for record in records(here.settings)
        if dict(record.headers)["source"] == b"replay"
        for record in records(here.settings)
        if ("source", b"replay") in record.headers
    ]
    assert {record.value for record in copied} == {
        one.message.payload for one in sent[-2:]
    }
    for record in copied:
        assert not {"observer", "seq"} & {name for name, _ in record.headers}


def test_messages_that_a_mirror_skips_are_not_missing(mirror: Mirror) -> None:
    """Other traffic of the shard, and ephemeral messages that no store has."""
    sent = sent_messages(20)
    topic = mirror(sent)
    with ConformanceNode() as node:
        for one in sent:
            node.store_late(one.message, pubsub_topic=PUBSUB_TOPIC)
        other = type(sent[0].message)(b"not SDS", CONTENT_TOPIC, START_NS + 5)
        node.store_late(other, pubsub_topic=PUBSUB_TOPIC)
        result = sds_monitor(
            "audit",
            *("--rest", node.url, "--pubsub-topic", PUBSUB_TOPIC),
            *bounds(20),
            *kafka(topic),
        )
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{node.url}: complete: 20 messages here and there\n"


def test_first_audit_says_what_is_older_than_the_mirror(mirror: Mirror) -> None:
    """A mirror that was started later than the store lacks nothing since then."""
    sent = sent_messages(20)
    topic = mirror(sent[8:])
    begin_ms = sent[8].message.timestamp_ns // 1_000_000 + 50
    with ConformanceNode() as node:
        for one in sent:
            node.store_late(one.message, pubsub_topic=PUBSUB_TOPIC)
        options = ("--rest", node.url, "--pubsub-topic", PUBSUB_TOPIC, *kafka(topic))
        code, found = audited(*options, *bounds(20))
        assert (code, found["missing_before_begin"]) == (1, 8)
        assert found["mirror_begin_ms"] == begin_ms
        begin = found["mirror_begin_utc"]
        assert begin == "2026-09-21T14:13:20.850Z"

        later = ("--from", str(begin), *bounds(20)[2:])
        code, found = audited(*options, *later)
    assert (code, found["missing_here"], found["missing_before_begin"]) == (0, [], 0)


def test_a_repeated_audit_serves_what_it_found(mirror: Mirror) -> None:
    """At /metrics and at the path that the monitor reads."""
    now_ns = time.time_ns() - 120_000_000_000
    sent = [
        Sent(
            type(one.message)(one.message.payload, CONTENT_TOPIC, now_ns + number),
            one.channel,
        )
        for number, one in enumerate(sent_messages(30))
    ]
    topic = mirror(sent[:-3])
    port = free_port()
    with ConformanceNode() as node:
        for one in sent:
            node.store_late(one.message, pubsub_topic=PUBSUB_TOPIC)
        command = [
            *(sys.executable, "-m", "streaming.cli", "audit", "--every", "1"),
            *("--rest", node.url, "--pubsub-topic", PUBSUB_TOPIC),
            *("--metrics-port", str(port), *kafka(topic)),
        ]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                url = f"http://127.0.0.1:{port}"

                def is_ready() -> bool:
                    try:
                        return httpx.get(f"{url}/readyz").status_code == 200
                    except httpx.TransportError:
                        return False

                wait_for(is_ready)
                lines = httpx.get(f"{url}/metrics").text.splitlines()
                assert 'sds_audit_missing_messages{side="here"} 3.0' in lines
                assert 'sds_audit_messages{side="there"} 30.0' in lines
                found = httpx.get(f"{url}/api/v1/audit").json()["audit"]
                assert found["missing_here"] == 3
                newest = {one.channel: now_ns // 1_000_000 for one in sent[-3:]}
                assert found["newest_missing_ms"] == newest
                node.stop()
                wait_for(lambda: httpx.get(f"{url}/readyz").status_code == 503)
                assert 'result="failed"' in httpx.get(f"{url}/metrics").text
                process.send_signal(signal.SIGTERM)
                assert process.wait(20) == 0
            finally:
                process.kill()


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        ([], 2, "give either --rest URL for a store"),
        (["--peer", "nowhere"], 2, "'nowhere' is not HOST:PORT"),
        (["--rest", "http://127.0.0.1:1"], 2, "to select what to mirror"),
        (
            ["--peer", "127.0.0.1:1", "--content-topic", "/a/1/b/c"],
            2,
            "omit --pubsub-topic",
        ),
        (["--peer", "127.0.0.1:1", "--from", "2", "--to", "2"], 2, "not earlier"),
        (["--peer", "127.0.0.1:1", "--every", "9", "--to", "2"], 2, "give --last"),
        (["--peer", "127.0.0.1:1"], 3, "cannot be reached"),
        (
            ["--rest", "http://127.0.0.1:1", "--pubsub-topic", "/x"],
            3,
            "no complete answer",
        ),
    ],
)
def test_wrong_use_and_unreachable_sides_end_in_one_line(
    mirror: Mirror, arguments: list[str], code: int, expected: str
) -> None:
    """With the exit code that the page of operations gives."""
    result = sds_monitor("audit", *arguments, *kafka(mirror([])))
    assert result.returncode == code, result.stderr
    assert expected in result.stderr
