"""``sds-monitor trace`` over real Kafka."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from connectors.broker.broker import EmbeddedBroker
from connectors.kafka import consumer
from connectors.kafka.producer import TopicRecord, partition_of, write
from connectors.kafka.settings import KafkaUnreachable
from connectors.simulator.scenario_files import load_scenario
from connectors.web.refusals import NoTrace, TraceFailed
from connectors.web.sources import TraceQuestion
from sds_core.observer.incidents import (
    ChannelIncident,
    Incident,
    IncidentKind,
    incident_object,
)
from sds_core.observer.settings import DEFAULTS
from sds_core.trace.document import trace_object
from sds_core.wire import decode, encode
from streaming.cli.actions import trace as trace_action
from streaming.cli.actions import trace_search, trace_worker
from streaming.cli.actions.incident_sources import ReadIncidents
from streaming.cli.actions.trace_search import begin_search
from streaming.cli.actions.trace_worker import tracing
from streaming.cli.incident_options import DEFAULT_API, IncidentSource
from streaming.cli.trace import command
from streaming.cli.trace_options import TraceRequest
from streaming.cli.window_options import ALL_TIMES
from tests.support.frames import FrameFactory
from tests.support.kafka import NOBODY, KafkaTopic, TopicMaker, make_topic
from tests.support.trace.causes import KINDS, Case, run_of
from tests.support.trace.traced import Simulated, simulated

NAME = "not delivered to one"
CHANNEL = "cut"
PARTITIONS = 4
HOUR_MS = 3_600_000
ID = "id of the message"
"""Stands for it in arguments: the simulation runs when the first test needs it."""


def case() -> Case:
    """The message that is traced."""
    return next(KINDS[NAME].cases(run_of(NAME)))


def trace(topic: KafkaTopic, *arguments: str) -> Result:
    """Run the command on a topic."""
    settings = topic.settings
    where = ["--bootstrap", settings.bootstrap, "--topic", settings.topic]
    return CliRunner().invoke(command, [*where, *arguments])


def documents(result: Result) -> list[dict[str, Any]]:
    """The traces that the command printed as JSON."""
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()]


def placed(run: Simulated, partition: int) -> list[TopicRecord]:
    """The records of a run, those of its channel in one of the partitions."""
    records = []
    for one in run.records:
        many = [partition] if one.key is not None else range(PARTITIONS)
        records += [
            TopicRecord(to, one.timestamp_ms, one.key, one.value, one.headers)
            for to in many
        ]
    return records


def renamed(records: Sequence[TopicRecord], channel: str) -> list[TopicRecord]:
    """The frames of some records, of another channel."""
    return [
        TopicRecord(
            0,
            one.timestamp_ms,
            channel.encode(),
            encode(decode(one.value)._replace(channel_id=channel)),
            one.headers,
        )
        for one in records
        if one.key is not None
    ]


@pytest.fixture(scope="module")
def town(kafka_broker: EmbeddedBroker) -> KafkaTopic:
    """A topic with one channel, in the partition that its key decides."""
    topic = make_topic(kafka_broker, PARTITIONS)
    write(
        placed(run_of(NAME), partition_of(CHANNEL.encode(), PARTITIONS)), topic.settings
    )
    return topic


def conclusions() -> list[dict[str, Any]]:
    """What a trace of the same records without Kafka concludes."""
    (found,) = run_of(NAME).trace(CHANNEL, [case().message_id])
    document: list[dict[str, Any]] = trace_object(found)["conclusions"]
    return document


@pytest.mark.kafka
def test_a_message_is_found_by_id_hash_and_sender(town: KafkaTopic) -> None:
    """With and without its channel; what is concluded is what the records show."""
    (found,) = documents(trace(town, case().message_id, "--format", "json"))
    assert found["channel"] == CHANNEL
    texts = [(one["figure"], one["names"]) for one in found["conclusions"]]
    assert texts == [(one["figure"], one["names"]) for one in conclusions()]
    facts = found["facts"]
    (same,) = documents(trace(town, facts["waku_hash"], "--format", "json"))
    assert same["steps"] == found["steps"]
    arguments = ["--sender", facts["sender"], "--channel", CHANNEL]
    sent = documents(trace(town, *arguments, "--format", "json"))
    assert {one["facts"]["sender"] for one in sent} == {facts["sender"]}
    assert len({one["message_id"] for one in sent}) == len(sent) > 1


@pytest.mark.kafka
def test_only_the_partition_of_the_channel_is_read(
    town: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Search and trace read the partition of its key, and no other."""
    read: set[int] = set()
    fetch = consumer.fetch

    def noted(client: Any, settings: Any, ranges: Any) -> Any:
        read.update(one.partition for one in ranges)
        return fetch(client, settings, ranges)

    monkeypatch.setattr(consumer, "fetch", noted)
    arguments = [case().message_id, "--channel", CHANNEL, "--format", "json"]
    (found,) = documents(trace(town, *arguments))
    assert read == {partition_of(CHANNEL.encode(), PARTITIONS)}
    assert any("only the channel's partition" in one for one in found["unknown"])


@pytest.mark.kafka
def test_text_and_diagrams_are_printed(town: KafkaTopic, tmp_path: Path) -> None:
    """Under other names if these are asked for; a page is written beside them."""
    file = tmp_path / "page.html"
    plain = trace(town, case().message_id, "--html", str(file))
    assert case().message_id in file.read_text()
    assert "counts as not delivered" in plain.stdout
    (lacking,) = case().cause.who
    assert lacking in plain.stdout
    for form, begin in (("mermaid", "sequenceDiagram"), ("plantuml", "@startuml")):
        drawn = trace(town, case().message_id, "--format", form, "--anonymise")
        assert drawn.stdout.startswith(begin)
        assert lacking not in drawn.stdout
        assert "participant-1" in drawn.stdout


@pytest.mark.kafka
def test_page_traces_in_a_process_of_its_own(
    town: KafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the command does; what there is no trace of is a refusal in one line."""
    monkeypatch.setattr(trace_worker, "LIMIT_S", 280.0)
    with tracing(town.settings) as made:
        question = TraceQuestion("sds", CHANNEL, case().message_id, None, DEFAULTS)
        document = trace_object(made(question))
        texts = [(one["figure"], one["names"]) for one in document["conclusions"]]
        assert texts == [(one["figure"], one["names"]) for one in conclusions()]
        unknown = question._replace(message_id="nonsense", since_ms=10**17)
        with pytest.raises(
            NoTrace, match="names message 'nonsense': give another since"
        ):
            made(unknown)
        monkeypatch.setattr(trace_worker, "LIMIT_S", 0.01)
        with pytest.raises(TraceFailed, match="the trace took too long"):
            made(question)


@pytest.mark.kafka
def test_every_unresolved_incident_of_a_channel_is_traced(
    town: KafkaTopic, tmp_path: Path
) -> None:
    """Those of a report; each trace has the incident as the report has it."""
    report = tmp_path / "report.json"
    document = run_of(NAME).monitor.report(with_detail=True)
    report.write_text(json.dumps(document))
    arguments = ["--incidents", "--channel", CHANNEL, "--from-report", str(report)]
    found = documents(trace(town, *arguments, "--format", "json"))
    assert 1 < len(found) <= 20
    reported = {(one["kind"], one["message_id"]): one for one in document["incidents"]}
    for one in found:
        for incident in one["incidents"]:
            known = reported[incident["kind"], incident["message_id"]]
            assert {name: incident[name] for name in known} == known


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonsense"], "names message 'nonsense': Kafka holds nothing before"),
        ([ID, "--to", "2025-10-09T08:54:00Z"], "names message"),
        ([ID, "--to", "2020-01-01T00:00:00Z"], "holds nothing before"),
        ([ID, "--channel", "cat"], "did you mean 'cut'"),
        (["--incidents"], "--incidents needs --channel"),
        ([], "give exactly one of MESSAGE_ID"),
        (["x" * 513], "an id has 513 characters, but 1 to 512 are allowed"),
        (["\udcff"], "is not UTF-8"),
        ([ID, "--follow", "--format", "mermaid"], "--follow"),
    ],
)
def test_what_is_not_found_is_wrong_use_in_one_line(
    town: KafkaTopic, arguments: list[str], message: str
) -> None:
    """A wrong id, an id outside the window, a wrong channel, options that clash."""
    message_id = case().message_id
    result = trace(town, *(one.replace(ID, message_id) for one in arguments))
    assert result.exit_code == 2
    error = [line for line in result.stderr.splitlines() if line.startswith("Error")]
    assert len(error) == 1
    assert message in result.stderr
    assert not result.stdout


@pytest.mark.kafka
def test_an_id_in_two_channels_needs_the_channel(kafka_topic: TopicMaker) -> None:
    """The error names both; with one of them its trace is printed."""
    topic = kafka_topic()
    write(
        [*renamed(run_of(NAME).records, "a"), *renamed(run_of(NAME).records, "b")],
        topic.settings,
    )
    result = trace(topic, case().message_id)
    assert result.exit_code == 2
    assert "occurs in 'a', 'b': give --channel" in result.stderr
    arguments = [case().message_id, "--channel", "b", "--format", "json"]
    (found,) = documents(trace(topic, *arguments))
    assert found["channel"] == "b"


@pytest.mark.kafka
def test_a_channel_that_kafka_has_forgotten_is_reported(
    kafka_topic: TopicMaker, tmp_path: Path
) -> None:
    """First some frames are deleted, then all of them; the incident is known."""
    topic = kafka_topic()
    frames = [one for one in run_of(NAME).records if one.key is not None]
    write(frames, topic.settings)
    topic.write(b"", time_ms=frames[-1].timestamp_ms + 10**7, key=b"later")
    topic.delete_before(1)
    (found,) = documents(trace(topic, case().message_id, "--format", "json"))
    assert any("Kafka holds nothing of partition 0" in one for one in found["unknown"])
    topic.delete_before(len(frames))
    report = tmp_path / "report.json"
    report.write_text(json.dumps(run_of(NAME).monitor.report(with_detail=True)))
    result = trace(topic, case().message_id, "--from-report", str(report))
    assert result.exit_code == 2
    assert "Kafka holds nothing before" in result.stderr


@pytest.mark.kafka
def test_follow_prints_what_new_records_show(kafka_topic: TopicMaker) -> None:
    """Another document for each change, until a signal ends it without an error."""
    topic = kafka_topic()
    frames = [one for one in run_of(NAME).records if one.key is not None]
    (whole,) = run_of(NAME).trace(CHANNEL, [case().message_id])
    middle_ms = (whole.evidence.appeared_ms or 0) + 60_000
    write([one for one in frames if one.timestamp_ms < middle_ms], topic.settings)
    settings = topic.settings
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "streaming.cli", "trace", case().message_id),
            *("--bootstrap", settings.bootstrap, "--topic", settings.topic),
            *("--follow", "--format", "json"),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    assert process.stdout is not None
    with process, process.stdout:
        before = json.loads(process.stdout.readline())
        write([one for one in frames if one.timestamp_ms >= middle_ms], settings)
        after = before
        # A poll may see only some of the new records.
        while len(after["steps"]) <= len(before["steps"]):
            after = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    assert "deliveries.lost" not in {one["figure"] for one in before["conclusions"]}


@pytest.mark.kafka
def test_a_message_of_mvds_is_traced_over_all_pairs_of_peers(
    kafka_topic: TopicMaker,
) -> None:
    """Its records lie in several partitions; its group is its channel."""
    run = simulated(load_scenario("mvds-batch"), partitions=PARTITIONS)
    topic = kafka_topic(PARTITIONS)
    write(run.records, topic.settings)
    message_id = next(iter(run.truth["messages"]))
    (found,) = documents(trace(topic, message_id, "--format", "json"))
    (known,) = run.trace("", [message_id], "mvds")
    expected = trace_object(known)
    assert found["channel"] == expected["channel"] != ""
    steps = [(one["what"], one["by"], one["to"]) for one in found["steps"]]
    assert steps == [(one["what"], one["by"], one["to"]) for one in expected["steps"]]
    assert {"message", "ack"} <= {what for what, _, _ in steps}
    arguments = ["--channel", found["channel"], "--format", "plantuml", "--anonymise"]
    drawn = trace(topic, message_id.upper(), *arguments)
    assert "P1->>P2: " in drawn.stdout


@pytest.mark.kafka
def test_incidents_hours_apart_are_all_found(
    kafka_topic: TopicMaker, tmp_path: Path
) -> None:
    """Also if a record is stamped in the future."""
    topic = kafka_topic(
        configuration={"message.timestamp.after.max.ms": str(10_000 * HOUR_MS)}
    )
    frames = FrameFactory("town")
    hours = {"old": 0, "between": 5, "new": 10}
    now_ms = time.time_ns() // 1_000_000
    records = [
        TopicRecord(
            0,
            now_ms - (12 - hour) * HOUR_MS,
            b"town",
            encode(frames.content(name, "alice", 1_000 + hour)),
            (),
        )
        for name, hour in hours.items()
    ]
    far_ms = now_ms + 1_000 * HOUR_MS
    records.append(replace(records[-1], timestamp_ms=far_ms))
    write(records, topic.settings)
    report = tmp_path / "report.json"
    incidents = [
        {
            "channel": "town",
            "kind": "lost",
            "message_id": name,
            "since": records[place].timestamp_ms,
            "found": now_ms,
            "ended": None,
            "sender": "alice",
            "lacking": {},
            "named_by": [],
            "waku_hash": None,
            "retrieval_hint": None,
            "tap_hole": False,
            "why": "",
        }
        for place, name in enumerate(hours)
        if name != "between"
    ]
    report.write_text(json.dumps({"schema": 1, "incidents": incidents}))
    arguments = ["--incidents", "--channel", "town", "--from-report", str(report)]
    found = documents(trace(topic, *arguments, "--format", "json"))
    assert [one["message_id"] for one in found] == ["old", "new"]
    (newest,) = documents(trace(topic, "new", "--format", "json"))
    assert newest["message_id"] == "new"


@pytest.mark.kafka
def test_a_fast_clock_hides_no_later_record(kafka_topic: TopicMaker) -> None:
    """One tap's records are stamped half an hour ahead, and lie before the message."""
    topic = kafka_topic()
    now_ms = time.time_ns() // 1_000_000
    frames = FrameFactory("town")
    value = encode(frames.content("id", "alice", 1_000))
    topic.write(b"x", time_ms=now_ms + HOUR_MS // 2, key=b"other")
    topic.write(value, time_ms=now_ms - 1_000, key=b"town")
    topic.write(value, time_ms=now_ms - 500, key=b"town")
    (found,) = documents(trace(topic, "id", "--format", "json"))
    assert found["read"]["records"] == 2
    for to_ms, records in ((now_ms - 500, 2), (now_ms - 501, 1)):
        arguments = ["--from", "0", "--to", str(to_ms), "--format", "json"]
        (found,) = documents(trace(topic, "id", *arguments))
        assert found["read"]["records"] == records
    late = trace(topic, "id", "--from", "0", "--to", str(now_ms - 1_001))
    assert late.exit_code == 2


@pytest.mark.kafka
def test_each_omitted_limit_has_its_default(kafka_topic: TopicMaker) -> None:
    """With --from, the trace does not end later; with --to, it begins no earlier."""
    topic = kafka_topic()
    at_ms = time.time_ns() // 1_000_000 - 10 * HOUR_MS
    frames = FrameFactory("town")
    for name, time_ms in (("a", at_ms - 5 * HOUR_MS), ("id", at_ms), ("b", at_ms)):
        topic.write(encode(frames.content(name, "x")), time_ms=time_ms, key=b"town")
    topic.write(encode(frames.content("c", "x")), time_ms=at_ms + 5 * HOUR_MS)

    def read(*limits: str) -> int:
        (found,) = documents(trace(topic, "id", *limits, "--format", "json"))
        records: int = found["read"]["records"]
        return records

    from_, to = str(at_ms - 6 * HOUR_MS), str(at_ms + 6 * HOUR_MS)
    assert read() == 2
    assert read("--from", from_) == 3
    assert read("--to", to) == 3
    assert read("--from", from_, "--to", to) == 4


def after_first(monkeypatch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """When a trace has read its first record, act before it reads the next one."""
    read = trace_action.read_in_order_of_time

    def interrupted(*given: Any) -> Iterator[Any]:
        for number, record in enumerate(read(*given)):
            yield record
            if number == 0:
                act()

    monkeypatch.setattr(trace_action, "read_in_order_of_time", interrupted)


def write_exchange(topic: KafkaTopic) -> int:
    """Write a message and another frame of its channel; return the frame's time."""
    begin_ms = time.time_ns() // 1_000_000 - HOUR_MS
    frames = FrameFactory("town")
    for number, (name, sender) in enumerate((("id", "alice"), ("next", "bob"))):
        value = encode(frames.content(name, sender, 1_000 + number))
        topic.write(value, time_ms=begin_ms + number, key=b"town")
    return begin_ms + 1


@pytest.mark.kafka
def test_deadlines_do_not_pass_because_of_unread_records(
    kafka_topic: TopicMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that are written while the trace reads do not advance its clock."""
    topic = kafka_topic()
    last_ms = write_exchange(topic)
    after_first(
        monkeypatch, lambda: topic.write(time_ms=last_ms + HOUR_MS // 2, key=b"town")
    )
    (found,) = documents(trace(topic, "id", "--format", "json"))
    assert found["read"]["to_ms"] == last_ms
    assert found["incidents"] == []


@pytest.mark.kafka
def test_a_trace_that_a_signal_interrupts_concludes_nothing(
    kafka_topic: TopicMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records that it has not read could refute its conclusions."""
    topic = kafka_topic()
    last_ms = write_exchange(topic)
    topic.write(time_ms=last_ms + HOUR_MS // 2, key=b"other")
    after_first(monkeypatch, lambda: os.kill(os.getpid(), signal.SIGINT))
    result = trace(topic, "id", "--format", "json")
    assert (result.exit_code, result.stdout) == (0, "")


@pytest.mark.kafka
def test_follow_ignores_records_after_the_window(
    kafka_topic: TopicMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it reads later is also limited by --to."""
    topic = kafka_topic()
    last_ms = write_exchange(topic)
    frames = FrameFactory("town")
    printed: list[dict[str, Any]] = []

    def note(document: dict[str, Any]) -> None:
        printed.append(document)
        if len(printed) > 1:
            os.kill(os.getpid(), signal.SIGINT)
            return
        for sender, time_ms in (("after", last_ms + 1), ("within", last_ms)):
            value = encode(frames.content(sender, sender, 2_000, history=["id"]))
            topic.write(value, time_ms=time_ms, key=b"town")

    monkeypatch.setattr(trace_action, "print_json", note)
    window = ["--from", "0", "--to", str(last_ms)]
    result = trace(topic, "id", *window, "--follow", "--format", "json")
    assert result.exit_code == 0
    names = {one["name"] for one in printed[-1]["participants"]}
    assert "within" in names
    assert "after" not in names


@pytest.mark.parametrize("arguments", [[], ["--api", DEFAULT_API]])
def test_a_named_monitor_is_asked_for_incidents(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    """Also if its address is the default."""
    asked: list[str] = []

    def read(source: IncidentSource, wanted: object) -> ReadIncidents:
        asked.append(source.api)
        return ReadIncidents([], {}, 0)

    monkeypatch.setattr(trace_search, "read_incidents", read)
    result = trace(KafkaTopic(NOBODY), "id", "--kafka-timeout", "1", *arguments)
    assert isinstance(result.exception, KafkaUnreachable)
    assert asked == arguments[1:]


def test_messages_with_several_incidents_count_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Twenty messages are traced, not the messages of twenty incidents."""
    incidents = [
        incident_object(
            ChannelIncident(
                "town", Incident(kind, f"m{number}", "", 1, 9 - number), False
            )
        )
        for number in range(21)
        for kind in IncidentKind
    ]
    report = tmp_path / "report.json"
    report.write_text(json.dumps({"incidents": incidents}))
    request = TraceRequest(None, None, True, "town", ALL_TIMES)
    with click.Context(command):
        begun = begin_search(IncidentSource(report=report), request)
    assert begun.query.message_ids == {f"m{number}" for number in range(20)}
    assert "only the 20 messages with the latest incidents" in caplog.text
