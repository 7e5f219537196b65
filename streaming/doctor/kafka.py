"""Checks of Kafka: whether it answers, topics, unread records and clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from connectors.kafka.handshake import wait_until_listening
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import KafkaSettings
from sds_core.observer.clock import ClockFigures, ClockLevel
from streaming.batch_log import read_batch_log
from streaming.clock_check import ADVICE, is_exact, measure
from streaming.damage import DamagedCheckpoint
from streaming.doctor.findings import Checked, checked
from streaming.doctor.topics import find_in_topics, find_short_retention
from streaming.position import Position, count_rows
from streaming.settings import JobSettings, SourceSettings
from streaming.source import SdsFramesReader

_ANSWER_S = 10.0
"""Longest wait for an answer, seconds."""


def check_kafka(
    settings: JobSettings, wall_ms: Callable[[], int], *, writes_heartbeats: bool
) -> Iterator[Checked]:
    """Check Kafka for a job; without an answer, only that. Writes nothing.

    Args:
        settings: The job.
        wall_ms: Returns wall time, Unix ms.
        writes_heartbeats: Whether the monitor writes to the topic of frames.
    """
    source = _soon(settings.source)
    answer = checked("kafka", partial(_answers, source.kafka))
    yield answer
    if answer.findings:
        return
    yield check_topics(settings, writes_heartbeats=writes_heartbeats)
    unread = partial(_unread, source, settings.checkpoint, wall_ms())
    yield checked("unread records", unread)
    yield checked("clock", partial(_clock, source.kafka, wall_ms))


def check_topics(settings: JobSettings, *, writes_heartbeats: bool) -> Checked:
    """Check rights and settings of a job's topics, in a moment; writes nothing."""
    settings = replace(settings, source=_soon(settings.source))
    return checked(
        "topics",
        partial(find_in_topics, settings, writes_heartbeats=writes_heartbeats),
    )


def _soon(source: SourceSettings) -> SourceSettings:
    """Return the settings with a shorter wait for an answer."""
    kafka = source.kafka
    kafka = replace(kafka, timeout_s=min(kafka.timeout_s, _ANSWER_S))
    return replace(source, kafka=kafka)


def _answers(kafka: KafkaSettings) -> tuple[str, ...]:
    wait_until_listening(kafka)
    return ()


def _unread(source: SourceSettings, checkpoint: Path, now_ms: int) -> Iterator[str]:
    """Check that the topic holds, and keeps, what a checkpoint has not read."""
    try:
        position = read_batch_log(checkpoint).position or Position()
    except DamagedCheckpoint:
        # The check of the checkpoint reports it.
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
