"""Writes docs/metrics.md from the declared metrics: ``python -m docs.make_metrics``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from docs.page_part import table
from sds_core.audit.figures import AUDIT_METRICS, AuditFigures
from sds_core.audit.serving_figures import SERVING_METRICS, ServingFigures
from sds_core.metrics import Metric, MetricKind
from sds_core.mirror.figures import (
    MIRROR_METRICS,
    NODE_METRICS,
    MirrorFigures,
    NodeFigures,
)
from sds_core.observer.channel_table import ChannelSettings
from sds_core.observer.figure_table import FigureTable
from sds_core.observer.histogram import BUCKETS_MS
from sds_core.observer.mvds.figures import GROUP_FIGURES
from sds_core.observer.protocols import PROTOCOLS
from sds_core.observer.sds.figures import CHANNEL_FIGURES
from sds_core.observer.snapshot import Snapshot, Views
from sds_core.observer.snapshot_metrics import settings_metrics, snapshot_metrics
from sds_core.observer.tap_kind import TAP_FIGURES
from sds_core.planning.forecast import Forecast, Interval, Outlook
from sds_core.planning.limits import Reached
from sds_core.planning.plan import Plan, plan_metrics, plan_totals_metrics

PAGE = Path(__file__).with_name("metrics.md")

_HEAD = """\
# Metrics

`.venv/bin/python -m docs.make_metrics` writes this page from the declarations in `sds_core/`; do not edit it by hand.
[figures.md](figures.md) defines the figures.

`sds-monitor run` serves all metrics at `/metrics`, except the metrics of mirrors and audits.
Counters and histograms of channels, taps and dead letters continue after a restart, because the checkpoint holds them.
The buckets of histograms have the upper bounds {bounds} seconds.
Until the monitor has read the checkpoint, the monitor exports only gauges and the histogram of the job's batches.
"""  # noqa: E501 - one sentence per line


class Section(NamedTuple):
    """A table of the page.

    Attributes:
        title: Heading of the table.
        text: Subject of the table, in one sentence.
        label: Label that names the source of the figures; empty if there is none.
        metrics: Metrics, one row each.
        example: Source of figures, to find the values of the other labels.
    """

    title: str
    text: str
    label: str
    metrics: Iterable[Metric[Any]]
    example: Any

    @classmethod
    def of(cls, title: str, text: str, table: FigureTable[Any]) -> Section:
        """Return the section of a kind of view."""
        return cls(title, text, table.names.label, table.metrics, table.totals())


_KINDS = [protocol.kind for protocol in PROTOCOLS]

_WEEK = Outlook(0, Interval(0, 0, 0), ())
_FORECAST = Forecast(
    0,
    0,
    {"bytes": _WEEK, "messages": _WEEK},
    [
        Reached(name, 1, 0, 0, 0, 0)
        for name in ("epoch_messages", "message_bytes", "filter_ids")
    ],
)

SECTIONS = (
    Section.of(
        "Channels",
        "The figures of all channels beyond the cardinality limit are added up. The "
        "sums have the label value `other`, and no verdict.",
        CHANNEL_FIGURES,
    ),
    Section.of(
        "Groups of MVDS",
        "The figures of all groups beyond the cardinality limit are added up. The sums "
        "have the label value `other`, and no verdict.",
        GROUP_FIGURES,
    ),
    *(
        Section(
            f"Settings of {kind.names.many}",
            f"The [channel table](channels.md) has the settings of {kind.names.many}. "
            "The metrics with the label value `other` show the default settings.",
            kind.names.label,
            settings_metrics(kind),
            ChannelSettings(),
        )
        for kind in _KINDS
    ),
    *(
        section
        for kind in _KINDS
        for section in (
            Section(
                f"Forecasts of {kind.names.many}",
                "Once an hour, the monitor [computes](planning.md) a forecast of each "
                f"{kind.names.one} that has its own label.",
                kind.names.label,
                plan_metrics(kind),
                _FORECAST,
            ),
            Section(
                f"Forecasts of all {kind.names.many}",
                "These metrics do not have the label `channel`.",
                "",
                plan_totals_metrics(kind),
                Plan(),
            ),
        )
    ),
    Section.of(
        "Taps",
        "The first 50 taps have a label value of their own; the others share the value "
        "`other`.",
        TAP_FIGURES,
    ),
    Section(
        "All channels and groups together, and the job",
        "Only some of these metrics have a label `channel` or `observer`.",
        "",
        snapshot_metrics(_KINDS),
        Snapshot(views={kind.prefix: Views(kind) for kind in _KINDS}),
    ),
    Section(
        "Mirror",
        "`sds-monitor mirror` serves these metrics at `/metrics`. The counters begin "
        "at 0 when the mirror starts.",
        "",
        MIRROR_METRICS,
        MirrorFigures(),
    ),
    Section(
        "Nodes of a mirror",
        "`sds-monitor mirror` also serves these metrics. `node` is the URL of the Waku "
        "node.",
        "node",
        NODE_METRICS,
        NodeFigures(),
    ),
    Section(
        "Audit",
        "`sds-monitor audit --every` serves these metrics at `/metrics`. The counters "
        "begin at 0 when the command starts.",
        "",
        AUDIT_METRICS,
        AuditFigures(),
    ),
    Section(
        "Audit that is served",
        "`sds-monitor audit serve` serves these metrics at `/metrics`. The counters "
        "begin at 0 when the command starts.",
        "",
        SERVING_METRICS,
        ServingFigures(),
    ),
)


def page(sections: Iterable[Section] = SECTIONS) -> str:
    """Return the whole page."""
    bounds = ", ".join(f"{bound_ms / 1000:g}" for bound_ms in BUCKETS_MS)
    parts = [_HEAD.format(bounds=bounds)]
    for section in sections:
        rows = list(_rows(section))
        head = ["metric", "type", "labels", "meaning"]
        text = section.text
        if section.label:
            text += f" All these metrics have the label `{section.label}`."
            head[2] = "other labels"
        if not any(labels for _, _, labels, _ in rows):
            del head[2]
            rows = [(name, kind, meaning) for name, kind, _, meaning in rows]
        lines = "\n".join(table(head, rows))
        parts.append(f"## {section.title}\n\n{text}\n\n{lines}\n")
    return "\n".join(parts)


def _rows(section: Section) -> Iterator[tuple[str, ...]]:
    for metric in section.metrics:
        values: dict[str, list[str]] = {name: [] for name in metric.labels}
        for sample, _ in metric.samples(section.example):
            for name, value in zip(metric.labels, sample, strict=True):
                if value and value not in values[name]:
                    values[name].append(value)
        labels = [
            f"`{name}` ({', '.join(found)})" if found else f"`{name}`"
            for name, found in values.items()
        ]
        suffix = "_info" if metric.kind is MetricKind.INFO else ""
        yield (
            f"`{metric.name}{suffix}`",
            metric.kind.value,
            ", ".join(labels),
            metric.help,
        )


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
