"""Prints what happened to messages."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from connectors.kafka.backward import offsets_at
from connectors.kafka.offsets import TopicOffsets
from connectors.kafka.settings import KafkaSettings
from connectors.kafka.timeline import read_in_order_of_time
from connectors.web.report import report_html
from connectors.web.trace_blocks import trace_report
from sds_core.text import iso_time
from sds_core.trace.diagram import mermaid, plantuml
from sds_core.trace.document import trace_object
from sds_core.trace.names import Pseudonyms
from sds_core.trace.trace import Trace, TraceReader
from streaming.cli.actions.trace_search import Search, begin_search, newest_ms, search
from streaming.cli.actions.window_ends import find_ends
from streaming.cli.incident_options import IncidentSource
from streaming.cli.output import check_page, print_json, wall_ms, write_page
from streaming.cli.signals import end_requested
from streaming.cli.trace_options import TraceForm, TraceRequest
from streaming.cli.trace_text import TracePrinter
from streaming.cli.window_options import ALL_TIMES
from streaming.settings import Window
from streaming.trace_feed import TraceFeed

_POLL_S = 1.0


def trace(
    kafka: KafkaSettings,
    source: IncidentSource,
    request: TraceRequest,
    form: TraceForm,
    follow: bool,
    anonymise: bool,
    html: Path | None,
) -> None:
    """Find messages, read the records that concern them, and print their traces.

    If `source` has only default values, it is read only if `request.incidents` is set.
    With `follow`, new records extend the traces until a signal comes. If `html` is
    given, the function finally writes all traces as a page to this file.

    Raises:
        click.ClickException: No message was found, or the incidents cannot be read.
    """
    if follow and form in (TraceForm.MERMAID, TraceForm.PLANTUML):
        message = "--follow cannot extend a diagram: give --format text or json"
        raise click.UsageError(message)
    if html is not None:
        check_page(html)
    output = _Output(form, anonymise)
    with closing(TopicOffsets(kafka)) as offsets:
        try:
            with end_requested() as ending:
                begun = begin_search(source, request)
                searched = search(kafka, offsets, begun, wall_ms())
                reading = _Reading(kafka, offsets, searched, follow)
                for traces in reading.traces(ending):
                    output.show(traces)
        finally:
            # The page of long traces may take longer than a signal leaves to the block.
            output.finish(html)


def traces_of(kafka: KafkaSettings, begun: Search) -> list[Trace]:
    """Find the messages of a search in the topic, and return their traces.

    The traces are in the order in which the messages appeared.

    Raises:
        click.UsageError: No message was found.
    """
    with closing(TopicOffsets(kafka)) as offsets:
        searched = search(kafka, offsets, begun, wall_ms())
        reading = _Reading(kafka, offsets, searched, follow=False)
        return next(reading.traces(threading.Event()))


class _Reading:
    """Reads the partitions that contain the messages; with `follow`, repeatedly."""

    def __init__(
        self,
        kafka: KafkaSettings,
        offsets: TopicOffsets,
        searched: Search,
        follow: bool,
    ) -> None:
        assert searched.protocol is not None  # noqa: S101 - `search` raises otherwise
        assert searched.protocol.tracing is not None  # noqa: S101 - see `search`
        self._kafka = kafka
        self._offsets = offsets
        self._window = _window(searched, follow)
        self._follow = follow
        all_partitions = offsets.partitions()
        is_keyed = searched.protocol.tracing.is_keyed
        # If a job reads several topics, frames of the channel may also be in the
        # partitions of other topics, so all partitions are read.
        knows_all = is_keyed and len(kafka.topics) == 1
        self._partitions = sorted(searched.partitions) if knows_all else all_partitions
        subjects = list(searched.subjects)
        reader = TraceReader(
            searched.protocol,
            subjects,
            searched.settings,
            has_all_numbers=self._partitions == all_partitions,
            unread=list(self._deleted()),
        )
        key = subjects[0].channel.encode() if is_keyed else None
        self._feed = TraceFeed(reader, searched.protocol.name, key, wall_ms())

    def traces(self, ending: threading.Event) -> Iterator[list[Trace]]:
        """Yield the traces once.

        With `follow`, yield them again after new records, until `ending` is set. New
        records of other partitions only advance the clock. If `ending` is set before
        all records are read, nothing more is yielded, because the unread records could
        refute the conclusions.
        """
        offsets, partitions = self._offsets, self._partitions
        # Each time, the clock is asked before the ends of the partitions. It thus never
        # reaches the time of an unread record.
        clock_ms = self._clock_ms()
        here = dict(offsets_at(offsets, partitions, self._window.first_ms))
        ends = find_ends(self._kafka, offsets, partitions, self._window)
        if not self._add(here, ends, ending):
            return
        yield self._feed.traces(clock_ms)
        while self._follow and not ending.wait(_POLL_S):
            before_ms, clock_ms = clock_ms, self._clock_ms()
            here, ends = ends, offsets.latest(partitions)
            if here != ends:
                self._feed.admit(wall_ms())
                if not self._add(here, ends, ending):
                    return
            elif clock_ms <= before_ms:
                continue
            yield self._feed.traces(clock_ms)

    def _add(
        self, starts: dict[int, int], ends: dict[int, int], ending: threading.Event
    ) -> bool:
        """Add the window's records in a range; return False if `ending` was set."""
        for record in read_in_order_of_time(self._kafka, self._offsets, starts, ends):
            if ending.is_set():
                return False
            if record.timestamp_ms in self._window:
                self._feed.add(record)
        return True

    def _clock_ms(self) -> int:
        """Return the latest record time of the topic, at most the end of the window.

        In the traces, deadlines before this time have passed.
        """
        offsets = self._offsets
        reached_ms = newest_ms(offsets, offsets.partitions(), wall_ms())
        return min(reached_ms or 0, self._window.last_ms)

    def _deleted(self) -> Iterator[str]:
        held = self._offsets.first_at_or_after(self._partitions, 0)
        for partition, at in sorted(held.items()):
            if at.offset > 0 and at.timestamp_ms > self._window.first_ms:
                name = self._kafka.partition_name(partition)
                yield (
                    f"Kafka holds nothing of partition {name} before "
                    f"{iso_time(at.timestamp_ms)} any more"
                )


def _window(searched: Search, follow: bool) -> Window:
    """Return the record times of the frames that can concern the messages.

    The receivers of a message are the participants that sent frames in the retention
    window before the message. The figures of a message also depend on frames in the
    retention window after the message. The limits that the user gave replace these.
    """
    settings, appeared = searched.settings, searched.appeared()
    asked = searched.request.window
    first_ms, last_ms = asked.first_ms, asked.last_ms
    if first_ms == ALL_TIMES.first_ms:
        first_ms = appeared.first_ms - settings.horizon_ms - settings.warm_up_ms
    if last_ms == ALL_TIMES.last_ms and not follow:
        last_ms = appeared.last_ms + settings.horizon_ms + settings.gap_deadline_ms
    return Window(max(0, first_ms), last_ms)


class _Output:
    """Prints traces as text, as JSON or as diagrams."""

    def __init__(self, form: TraceForm, anonymise: bool) -> None:
        self._form = form
        self._names = Pseudonyms() if anonymise else None
        self._printer = TracePrinter(Console(file=sys.stdout))
        self._objects: dict[str, dict[str, Any]] = {}
        self._shown: Sequence[Trace] = ()

    def show(self, traces: Sequence[Trace]) -> None:
        """Print traces.

        If a trace was printed before, a text has only the new steps. JSON has the whole
        trace again, if the trace has changed.
        """
        if self._names is not None:
            traces = [self._names.replaced(one) for one in traces]
        for one in traces:
            self._print(one)
        self._shown = traces

    def finish(self, html: Path | None) -> None:
        """End the output: print the conclusions of traces that were printed as text.

        If `html` is given, write all traces as a page to this file.
        """
        if self._form is TraceForm.TEXT:
            for one in self._shown:
                self._printer.print_end(one)
        if html is not None and self._shown:
            write_page(report_html(trace_report(self._shown)), html)

    def _print(self, trace: Trace) -> None:
        if self._form is TraceForm.TEXT:
            self._printer.print_new(trace)
        elif self._form is TraceForm.JSON:
            self._print_object(trace)
        else:
            draw = mermaid if self._form is TraceForm.MERMAID else plantuml
            click.echo(draw(trace))

    def _print_object(self, trace: Trace) -> None:
        document = trace_object(trace)
        # These fields may change with each record of any channel.
        compared = {**document, "read": None, "taps": None}
        if self._objects.get(trace.message_id) != compared:
            self._objects[trace.message_id] = compared
            print_json(document)
