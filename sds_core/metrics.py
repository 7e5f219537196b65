"""Declares Prometheus metrics and the functions that read their samples.

The exporter, the table in ``docs/metrics.md`` and the tests take all names of metrics
from `Metric` objects.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class MetricKind(enum.StrEnum):
    """Prometheus metric types in use."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


class BucketCounts(Protocol):
    """Durations counted in buckets: `sds_core.observer.histogram.Histogram`.

    `BucketCounts` is a protocol, because packages that declare metrics must not import
    each other.
    """

    @property
    def counts(self) -> Sequence[int]:
        """Number of durations in each bucket, not cumulative."""

    @property
    def sum_ms(self) -> int:
        """Sum of all durations in milliseconds."""


Value = int | float | BucketCounts
"""Value of a sample; histograms hold milliseconds and are exported in seconds."""

Sample = tuple[tuple[str, ...], Value]
"""Values of the metric's own labels, and the value of the sample."""

Source = TypeVar("Source")


@dataclass(frozen=True, slots=True)
class Metric(Generic[Source]):
    """One metric.

    Attributes:
        name: Full name as scraped, without the suffixes of histograms and of `INFO`.
        help: One sentence.
        labels: Label names without the label that names the source itself (`channel`,
            `observer`, `node`).
        samples: Reads the samples of a source. If the result is empty, no series is
            exported.
        summable: Whether the sum over several sources is meaningful and exported as
            source `other`.
    """

    name: str
    kind: MetricKind
    help: str
    labels: tuple[str, ...]
    samples: Callable[[Source], Iterable[Sample]]
    summable: bool = True


def one_sample(
    name: str,
    text: str,
    read: Callable[[Source], Value | None],
    kind: MetricKind | None = None,
) -> Metric[Source]:
    """Return a metric that adds no labels; a value of None exports no series.

    By default, the metric is a counter if its name ends in ``_total``, else a gauge.
    """

    def samples(source: Source) -> Iterable[Sample]:
        value = read(source)
        return () if value is None else (((), value),)

    is_counter = name.endswith("_total")
    default = MetricKind.COUNTER if is_counter else MetricKind.GAUGE
    return Metric(name, kind or default, text, (), samples)


def in_seconds(milliseconds: int | None) -> float | None:
    """Return a duration in seconds, Prometheus' base unit; None stays None."""
    return None if milliseconds is None else milliseconds / 1000
