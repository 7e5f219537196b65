"""A process that traces a message for the status page."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import click
import msgspec

from connectors.kafka.settings import (
    KafkaSettings,
    KafkaUnreachable,
    RecordsLost,
    TopicMissing,
    TopicReplaced,
)
from connectors.web.refusals import NoTrace, TraceFailed
from connectors.web.sources import TraceQuestion
from sds_core.observer.protocols import PROTOCOLS
from sds_core.observer.tracing import Query
from sds_core.trace.trace import Trace
from streaming.cli.actions.trace import traces_of
from streaming.cli.actions.trace_search import Search, set_since
from streaming.cli.trace_options import TraceRequest
from streaming.cli.window_options import ALL_TIMES
from streaming.worker import Workers, WorkFailed, work

LIMIT_S = 30.0
"""Maximum time to start a process and make a trace, seconds.

Most traces take a few seconds.
"""

_COMMAND = [sys.executable, "-m", "streaming.cli.actions.trace_worker"]


class TraceOrder(NamedTuple):
    """The message to trace, and the topic that contains it."""

    kafka: KafkaSettings
    question: TraceQuestion


class MadeTrace(msgspec.Struct):
    """A trace; or `problem`, which says why no trace could be made.

    `is_unreachable` means that Kafka does not answer, or that the topic is missing or
    was recreated.
    """

    trace: Trace | None = None
    problem: str = ""
    is_unreachable: bool = False


@contextmanager
def tracing(kafka: KafkaSettings) -> Iterator[Callable[[TraceQuestion], Trace]]:
    """Yield the function for `Sources.trace`; when the block ends, kill its workers."""
    # The worker must report an unreachable broker before `LIMIT_S` has passed.
    kafka = replace(kafka, timeout_s=min(kafka.timeout_s, LIMIT_S / 2))
    with closing(Workers()) as workers:
        yield partial(_made, workers, kafka)


def _made(workers: Workers, kafka: KafkaSettings, question: TraceQuestion) -> Trace:
    order = TraceOrder(kafka, question)
    try:
        answer = workers.answer(_COMMAND, order, MadeTrace, LIMIT_S)
    except WorkFailed as error:
        message = f"the trace {error}: use sds-monitor trace, which has no time limit"
        raise TraceFailed(message) from error
    if answer.trace is None:
        raise (TraceFailed if answer.is_unreachable else NoTrace)(answer.problem)
    return answer.trace


def make(order: TraceOrder) -> MadeTrace:
    """Make a trace, or return why it is not possible."""
    question = order.question
    request = TraceRequest(
        question.message_id, None, False, question.channel, ALL_TIMES
    )
    since = "since" if question.since_ms is None else "another since"
    begun = Search(
        request,
        question.settings,
        Query(frozenset({question.message_id})),
        ALL_TIMES,
        {one.name: one for one in PROTOCOLS if one.kind.prefix == question.prefix},
        question.channel,
        remedy=f"give {since}, or use the command sds-monitor trace",
    )
    if question.since_ms is not None:
        set_since(begun, [question.since_ms])
    try:
        request.check()
        return MadeTrace(traces_of(order.kafka, begun)[0])
    except click.UsageError as error:
        return MadeTrace(problem=error.message)
    except RecordsLost:
        return MadeTrace(problem="Kafka deleted records during the read: ask again")
    except (KafkaUnreachable, TopicMissing, TopicReplaced) as error:
        return MadeTrace(problem=str(error), is_unreachable=True)


if __name__ == "__main__":
    work(TraceOrder, make)
