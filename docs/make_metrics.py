"""Writes docs/metrics.md from the catalogue: ``python -m docs.make_metrics``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sds_core.catalogue import (
    CHANNEL_METRICS,
    MIRROR_METRICS,
    NODE_METRICS,
    SETTINGS_METRICS,
    SNAPSHOT_METRICS,
    TAP_METRICS,
    Kind,
    Metric,
)
from sds_core.mirror.figures import MirrorFigures, NodeFigures
from sds_core.observer.channel_table import ChannelSettings
from sds_core.observer.histogram import BUCKETS_MS
from sds_core.observer.sds.totals import ChannelTotals
from sds_core.observer.snapshot import Snapshot
from sds_core.observer.tap_view import TapTotals

PAGE = Path(__file__).with_name("metrics.md")

_HEAD = """\
# Metrics

Made from `sds_core/catalogue.py` by `.venv/bin/python -m docs.make_metrics`; do not edit it by hand.
What each figure means is in [figures.md](figures.md).

All but those of the mirror are at `/metrics` of `sds-monitor run`.
Counters and histograms of channels, taps and dead letters go on over restarts, since they lie in the checkpoint.
Histograms are in seconds with the upper bounds {bounds}; their series end in `_bucket`, `_sum` and `_count`.
Before the totals of the checkpoint have been read, only the gauges and the histogram of the job itself are there.
"""  # noqa: E501 - one sentence per line

_SECTIONS: tuple[tuple[str, str, str, Iterable[Metric[Any]], Any], ...] = (
    (
        "Channels",
        "Channels beyond the label budget are summed as channel `other`, "
        "which has no verdict.",
        "channel",
        CHANNEL_METRICS,
        ChannelTotals(),
    ),
    (
        "What the operator says of channels",
        "By the [channel table](channels.md); channel `other` has the defaults.",
        "channel",
        SETTINGS_METRICS,
        ChannelSettings(),
    ),
    (
        "Taps",
        "The first 50 observers; the others are observer `other`.",
        "observer",
        TAP_METRICS,
        TapTotals(),
    ),
    (
        "Everything, and the job itself",
        "Without a label of a channel or a tap.",
        "",
        SNAPSHOT_METRICS,
        Snapshot(),
    ),
    (
        "Mirror",
        "At `/metrics` of `sds-monitor mirror`, each since that was started.",
        "",
        MIRROR_METRICS,
        MirrorFigures(),
    ),
    (
        "Nodes of a mirror",
        "At the same place; `node` is the node's URL.",
        "node",
        NODE_METRICS,
        NodeFigures(),
    ),
)


def page() -> str:
    """The page as it must be."""
    bounds = ", ".join(f"{bound_ms / 1000:g}" for bound_ms in BUCKETS_MS)
    parts = [_HEAD.format(bounds=bounds)]
    for title, text, label, metrics, example in _SECTIONS:
        rows = "\n".join(_rows(label, metrics, example))
        parts.append(
            f"## {title}\n\n{text}\n\n"
            f"| metric | type | labels | meaning |\n|---|---|---|---|\n{rows}\n"
        )
    return "\n".join(parts)


def _rows(label: str, metrics: Iterable[Metric[Any]], example: Any) -> Iterator[str]:
    for metric in metrics:
        labels = [f"`{label}`"] if label else []
        values: dict[str, list[str]] = {name: [] for name in metric.labels}
        for sample, _ in metric.samples(example):
            for name, value in zip(metric.labels, sample, strict=True):
                if value and value not in values[name]:
                    values[name].append(value)
        labels += [
            f"`{name}` ({', '.join(found)})" if found else f"`{name}`"
            for name, found in values.items()
        ]
        suffix = "_info" if metric.kind is Kind.INFO else ""
        yield (
            f"| `{metric.name}{suffix}` | {metric.kind.value} "
            f"| {', '.join(labels)} | {metric.help} |"
        )


def main() -> None:
    """Write the page anew."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
