"""Restarts of a query, without Spark and Kafka."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

import pytest

from connectors.kafka.settings import KafkaSettings
from streaming.cli.output import wall_ms
from streaming.cli.serving import PendingJob
from streaming.cli.supervising import Supervisor
from streaming.failure import JobFailed
from streaming.retries import Retries
from streaming.settings import JobSettings, SourceSettings


@pytest.mark.parametrize("unreachable", [True, False])
def test_restart_after_an_outage_says_since_when_kafka_answers(
    monkeypatch: pytest.MonkeyPatch, unreachable: bool
) -> None:
    """So no partition counts as idle because of the outage."""
    started: list[int] = []
    begun_ms = wall_ms()

    @contextmanager
    def running_job(
        _: Any, settings: JobSettings, *__: Any, **___: Any
    ) -> Iterator[Any]:
        started.append(settings.source.answering_ms)
        if len(started) == 1:
            raise JobFailed("no answer", unreachable=unreachable, passes=True)
        yield Mock()

    place = "streaming.cli.supervising"
    monkeypatch.setattr(f"{place}.running_job", running_job)
    monkeypatch.setattr(f"{place}.watched_topic", lambda *_: nullcontext())
    monkeypatch.setattr(f"{place}.every_second", lambda *_: ())
    monkeypatch.setattr(Supervisor, "_wait", lambda *_: True)
    source = SourceSettings(KafkaSettings("", "frames"))
    Supervisor(
        cast("Any", None),
        JobSettings(source, Path("state")),
        PendingJob(),
        threading.Event(),
        Retries(),
        lambda: None,
    ).run(lambda _: None)
    first_ms, again_ms = started
    assert first_ms == 0
    assert (again_ms >= begun_ms) is unreachable
