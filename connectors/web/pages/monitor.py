"""`/monitor`: whether the monitor itself works without lag."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connectors.web import words
from connectors.web.pages.layout import Layout
from connectors.web.parameters import views_of
from connectors.web.sources import Sources
from connectors.web.summary import stopped
from sds_core.observer.clock import ClockFigures, ClockLevel
from sds_core.observer.settings import DEFAULTS
from sds_core.observer.settings_table import changed
from sds_core.observer.snapshot import JobFigures, Snapshot, Views
from sds_core.text import byte_size

_Facts = list[tuple[str, str]]


def routes(layout: Layout, sources: Sources) -> list[BaseRoute]:
    """Return the route of the page about the monitor's Spark job."""

    def page(request: Request) -> Response:
        snapshot = sources.current()
        clock = snapshot.job.clock
        return layout.page(
            request,
            snapshot,
            "monitor.html",
            title="Monitor",
            state=_state(snapshot),
            kafka=_silence(snapshot.job),
            clock=_clock_trouble(clock),
            groups=[
                ("Progress", _progress(snapshot)),
                ("Batches", _batches(snapshot)),
                ("State", _storage(snapshot, views_of(request, snapshot))),
                (
                    "Clock",
                    [
                        ("Behind Kafka's", _seconds(clock.behind_ms)),
                        ("New records ahead", _seconds(clock.records_ahead_ms)),
                    ],
                ),
                ("Settings of the model", _settings(snapshot)),
            ],
            undecodable=[
                (reason, words.number(count))
                for reason, count in sorted(
                    snapshot.undecodable.items(), key=lambda one: (-one[1], one[0])
                )
                if count
            ],
        )

    return [Route("/monitor", page)]


def _state(snapshot: Snapshot) -> str:
    job = snapshot.job
    if job.missing_topic is not None:
        return (
            "The query waits until the topic exists. The figures are those of the "
            "last batch."
        )
    if job.error:
        return f"{stopped(job)}: {words.one_line(job.error)}"
    if not snapshot.primed:
        if job.kafka.is_awaited:
            return (
                "The monitor waits for Kafka. When Kafka answers, the monitor starts "
                "the query."
            )
        if job.reading_checkpoint:
            return "The query is starting: the monitor reads the checkpoint."
        return "The query is starting: Spark needs about 10 s."
    if not job.running:
        return "The query has stopped. The figures are those of the last batch."
    if job.event_time_lag_seconds is None:
        if not snapshot.clock_ms:
            return "The query runs, but has not read any record yet."
        return "The query runs, but its first batch has not ended yet."
    return "The query runs."


def _progress(snapshot: Snapshot) -> _Facts:
    job = snapshot.job
    return [
        ("Event-time lag", words.seconds(job.event_time_lag_seconds)),
        ("Lag in records", words.number(job.records_behind)),
        ("Records withheld", words.number(job.records_withheld)),
        ("Event time of last batch", words.utc(snapshot.clock_ms)),
        ("Kafka last answered", words.utc(job.kafka.answered_ms)),
        ("Records read", words.number(job.records)),
        ("Records lost", words.number(job.records_lost)),
        ("Dead letters not written", words.number(job.dead_letters_unwritten)),
        ("Restarts", words.number(job.restarts)),
        ("Version", job.version or words.NOTHING),
        ("Rules", job.rules or words.NOTHING),
    ]


def _batches(snapshot: Snapshot) -> _Facts:
    durations = snapshot.job.batch_duration
    return [
        ("Since the start", words.number(durations.count)),
        *((f"p{p}", words.percentile(durations, p)) for p in (50, 95, 99)),
    ]


def _storage(snapshot: Snapshot, views: Views[Any]) -> _Facts:
    remainder = views.remainder
    many = views.kind.names.many.capitalize()
    return [
        ("State", byte_size(snapshot.job.state_bytes)),
        (many, words.number(len(views.totals))),
        (f"{many} forgotten", words.number(remainder.views if remainder else 0)),
        (f"{many} beyond the cardinality limit", words.number(views.unlabelled)),
        ("History rows to be written", words.number(snapshot.job.history_pending)),
    ]


def _settings(snapshot: Snapshot) -> _Facts:
    others = changed(snapshot.observer)
    if not others:
        return [("All", "the defaults")]
    return [
        (name, f"{value}, not {getattr(DEFAULTS, name)}")
        for name, value in others.items()
    ]


def _seconds(milliseconds: int | None) -> str:
    return words.seconds(None if milliseconds is None else milliseconds / 1000)


def _silence(job: JobFigures) -> str:
    kafka = job.kafka
    if not kafka.is_stale:
        if job.missing_topic is None:
            return ""
        return f"{words.topic_missing(job.missing_topic)}: {words.TOPIC_REMEDY}."
    why = f": {words.one_line(kafka.cause)}" if kafka.cause else ""
    if kafka.is_awaited:
        return f"{words.no_answer(kafka)}{why}. No figures exist yet."
    return (
        f"{words.no_answer(kafka)}{why}. The figures date from Kafka's last answer. "
        "The job continues when Kafka answers again."
    )


def _clock_trouble(clock: ClockFigures) -> str:
    if clock.level() is ClockLevel.AGREES:
        return ""
    return f"{clock.sentence[0].upper()}{clock.sentence[1:]}."
