"""What the log says while Kafka does not answer."""

from __future__ import annotations

import logging

import pytest

from sds_core.observer.freshness import Freshness, MissingTopic
from streaming.cli.silence import SilenceLog

ANSWERED = Freshness(1_786_276_990_123, answered_s=100.0, cause="no broker")


def test_silence_is_logged_at_its_begin_and_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Once each, with its length."""
    caplog.set_level(logging.INFO, "sds-monitor")
    log = SilenceLog()
    for now_s in (101.0, 115.0, 116.0, 117.0, 400.0):
        log.observe(ANSWERED.as_of(now_s))
    assert caplog.messages == [
        "Kafka has not answered since 2026-08-09 12:03:10 UTC: no broker"
    ]
    caplog.clear()
    for _ in range(2):
        log.observe(Freshness(1_786_277_298_123, answered_s=408.0).as_of(408.5))
    assert caplog.messages == ["Kafka answers again after 308 s"]


def test_silence_from_the_start_on_is_logged_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Kafka has not answered before, so it does not answer again."""
    caplog.set_level(logging.INFO, "sds-monitor")
    log = SilenceLog()
    asked = Freshness(None, 100.0, 0.0, "no broker", 1_786_276_990_123)
    log.observe(asked.as_of(115.0))
    assert caplog.messages == []
    log.observe(asked.as_of(116.0))
    log.observe(Freshness(1_786_277_010_123, answered_s=120.0))
    assert caplog.messages == [
        "Kafka has not answered since the start at 2026-08-09 12:03:10 UTC: no broker",
        "Kafka answers after 20 s",
    ]


def test_short_silence_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A partition that changes its leader is none of the operator's business."""
    caplog.set_level(logging.INFO, "sds-monitor")
    log = SilenceLog()
    log.observe(Freshness())
    log.observe(ANSWERED.as_of(115.0))
    log.observe(Freshness(1_786_277_298_123, answered_s=115.0))
    assert caplog.messages == []


def test_missing_topic_is_logged_at_its_begin_and_at_its_end(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Once each; the first line says what to do."""
    caplog.set_level(logging.INFO, "sds-monitor")
    log = SilenceLog()
    for missing in (None, MissingTopic("frames", 1_786_276_990_123), None):
        for _ in range(2):
            log.observe(Freshness(), missing)
    assert caplog.messages == [
        "Topic frames has been missing since 2026-08-09 12:03:10 UTC: recreate the "
        "topic; --on-lost-records determines how the job then continues "
        "(docs/topics.md, A recreated topic)",
        "topic frames exists again",
    ]
