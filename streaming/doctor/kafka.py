"""Checks of Kafka: connection, topics, unread records and clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from connectors.kafka.handshake import wait_until_listening
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import KafkaSettings, TopicMissing
from connectors.kafka.survey import TopicFacts, survey
from sds_core.observer.clock import ClockFigures, ClockLevel
from sds_core.observer.protocols import PROTOCOLS, kinds_of
from streaming.batch_log import read_batch_log
from streaming.clock_check import ADVICE, is_exact, measure
from streaming.damage import DamagedCheckpoint
from streaming.doctor.findings import Checked, checked
from streaming.doctor.history import find_mixed_rows
from streaming.history import topic_names
from streaming.position import Position, count_rows
from streaming.settings import JobSettings, SourceSettings
from streaming.source import SdsFramesReader

_DAY_MS = 86_400_000

_RIGHTS = {"READ": "Read", "WRITE": "Write", "DESCRIBE": "Describe"}
"""Rights that a job may need.

The keys are their names in Kafka's answers, the values their names in Kafka's
documentation.
"""

_ANSWER_S = 10.0
"""Maximum time to wait for an answer of Kafka, seconds."""


class _Use(NamedTuple):
    name: str
    rights: tuple[str, ...]
    is_created: bool


def find_in_topics(settings: JobSettings, *, writes_heartbeats: bool) -> Iterator[str]:
    """Yield findings on rights and settings of a job's topics; writes nothing.

    Raises:
        connectors.kafka.settings.KafkaUnreachable: No broker answered.
    """
    kafka = settings.source.kafka
    uses = list(_uses(settings, writes_heartbeats))
    facts = survey(kafka, [use.name for use in uses], settings.group)
    user = kafka.security.username or "the monitor"
    for use in uses:
        yield from _wrong_access(use, facts.topics[use.name], user, facts.may_create)
    if not facts.may_commit:
        yield (
            f"{user} may not commit offsets of group {settings.group}, so lag tools do "
            "not work: give it the right Read on the group"
        )
    for topic in kafka.topics:
        frames = facts.topics[topic].configuration
        yield from _wrong_settings(topic, frames)
        if settings.dead_letter_topic is not None:
            letters = facts.topics[settings.dead_letter_topic].configuration
            yield from _cut_letters(settings.dead_letter_topic, letters, frames)


def find_short_retention(
    kafka: KafkaSettings, clock_ms: int, now_ms: int
) -> Iterator[str]:
    """Yield a finding if Kafka will soon delete records that the job has not read yet.

    `clock_ms` is the event time up to which the job has read, `now_ms` the wall time,
    both in Unix ms.
    """
    for topic, facts in survey(kafka, kafka.topics, None).topics.items():
        retention_ms = int(facts.configuration.get("retention.ms", -1))
        if 0 <= retention_ms < 2 * (now_ms - clock_ms):
            behind_hours = (now_ms - clock_ms) / 3_600_000
            yield (
                f"the checkpoint is {behind_hours:,.1f} h behind, and topic {topic} "
                f"keeps records for {retention_ms / 3_600_000:,.1f} h: start the job "
                "soon, or raise retention.ms"
            )


def _uses(settings: JobSettings, writes_heartbeats: bool) -> Iterator[_Use]:
    beats = ("WRITE",) if writes_heartbeats else ()
    for topic in settings.source.kafka.topics:
        yield _Use(topic, ("DESCRIBE", "READ", *beats), False)
    written = [settings.dead_letter_topic]
    if settings.history is not None:
        for kind in kinds_of(PROTOCOLS):
            if kind.has_findings:
                written += topic_names(settings.history, kind)
    for name in written:
        if name is not None:
            yield _Use(name, ("DESCRIBE", "WRITE"), True)


def _wrong_access(
    use: _Use, facts: TopicFacts, user: str, may_create: bool
) -> Iterator[str]:
    if facts.is_hidden:
        yield _lacks(user, ("DESCRIBE",), use.name)
    elif facts.exists:
        # `operations` is empty if the broker does not report rights. Such a broker
        # refuses an operation only when the user tries it.
        if facts.operations and (
            lacking := [one for one in use.rights if one not in facts.operations]
        ):
            yield _lacks(user, lacking, use.name)
    elif not use.is_created:
        yield str(TopicMissing(use.name, "this cluster"))
    elif facts.operations and not (may_create or "CREATE" in facts.operations):
        yield (
            f"topic {use.name} does not exist, and {user} may not create it: create "
            "it, or give the user the right Create on it"
        )


def _lacks(user: str, rights: Iterable[str], topic: str) -> str:
    names = " and ".join(_RIGHTS[right] for right in rights)
    return f"{user} lacks the right {names} on topic {topic}: give it to the user"


def _wrong_settings(topic: str, configuration: Mapping[str, str]) -> Iterator[str]:
    if configuration.get("message.timestamp.type") == "LogAppendTime":
        yield (
            f"topic {topic} has message.timestamp.type=LogAppendTime, so every figure "
            "has Kafka's time and not that of taps: set CreateTime"
        )
    if "compact" in configuration.get("cleanup.policy", ""):
        yield (
            f"topic {topic} is compacted, so it keeps only the newest frame of a "
            "channel: set cleanup.policy=delete"
        )
    retention_ms = int(configuration.get("retention.ms", -1))
    if 0 <= retention_ms < _DAY_MS:
        yield (
            f"topic {topic} keeps records for {retention_ms / 3_600_000:,.1f} h, and a "
            "job that is stopped for longer loses records: set retention.ms to a day "
            "or more"
        )


def _cut_letters(
    topic: str, letters: Mapping[str, str], frames: Mapping[str, str]
) -> Iterator[str]:
    name = "max.message.bytes"
    if name in letters and int(letters[name]) < int(frames.get(name, 0)):
        yield (
            f"topic {topic} takes {int(letters[name]):,} bytes, and the topic of frames"
            f" {int(frames[name]):,}, so larger dead letters are cut: set {name} of "
            f"{topic} to {frames[name]}"
        )


def check_kafka(
    settings: JobSettings, wall_ms: Callable[[], int], *, writes_heartbeats: bool
) -> Iterator[Checked]:
    """Make all checks of Kafka; if Kafka does not answer, make only the first check.

    Writes nothing. `wall_ms` returns wall time, Unix ms.
    """
    source = _soon(settings.source)
    answer = checked("kafka", partial(_answers, source.kafka))
    yield answer
    if answer.findings:
        return
    yield check_topics(settings, writes_heartbeats=writes_heartbeats)
    yield check_history(settings)
    unread = partial(_unread, source, settings.checkpoint, wall_ms())
    yield checked("unread records", unread)
    yield checked("clock", partial(_clock, source.kafka, wall_ms))


def check_topics(settings: JobSettings, *, writes_heartbeats: bool) -> Checked:
    """Check rights and settings of a job's topics quickly; writes nothing."""
    settings = replace(settings, source=_soon(settings.source))
    return checked(
        "topics",
        partial(find_in_topics, settings, writes_heartbeats=writes_heartbeats),
    )


def check_history(settings: JobSettings) -> Checked:
    """Check that rows of two jobs do not mix in the history; writes nothing."""
    settings = replace(settings, source=_soon(settings.source))
    return checked("history", partial(find_mixed_rows, settings))


def _soon(source: SourceSettings) -> SourceSettings:
    kafka = source.kafka
    kafka = replace(kafka, timeout_s=min(kafka.timeout_s, _ANSWER_S))
    return replace(source, kafka=kafka)


def _answers(kafka: KafkaSettings) -> tuple[str, ...]:
    wait_until_listening(kafka)
    return ()


def _unread(source: SourceSettings, checkpoint: Path, now_ms: int) -> Iterator[str]:
    try:
        position = read_batch_log(checkpoint).position or Position()
    except DamagedCheckpoint:
        # `find_in_checkpoint` reports the damage.
        return
    reader = SdsFramesReader(source)
    try:
        reader.check(position)
    finally:
        reader.stop()
    if not position.clock_ms:
        return
    with closing(TopicOffsets(source.kafka)) as offsets:
        ends = offsets.latest(offsets.partitions())
    starts = dict.fromkeys(ends, 0) | position.next_offsets()
    if count_rows(starts, ends):
        yield from find_short_retention(source.kafka, position.clock_ms, now_ms)


def _clock(kafka: KafkaSettings, wall_ms: Callable[[], int]) -> Iterator[str]:
    with closing(TopicOffsets(kafka)) as offsets:
        behind_ms, took_ms = measure(offsets.broker_time_ms, wall_ms)
    figures = ClockFigures(behind_ms)
    if is_exact(took_ms) and figures.level() is not ClockLevel.AGREES:
        yield f"{figures.sentence}: {ADVICE}"
