"""Classes that declare Prometheus metrics, and the functions that read their samples.

The exporter, the table in ``docs/metrics.md`` and the tests read the metrics' names
from `Metric` objects.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class MetricKind(enum.StrEnum):
    """Types of Prometheus metrics that are exported."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


class BucketCounts(Protocol):
    """Counts of durations in buckets, such as `sds_core.observer.histogram.Histogram`.

    This class is a protocol, so that no package has to import `Histogram` from another
    package.
    """

    @property
    def counts(self) -> Sequence[int]:
        """Number of durations in each bucket; the numbers are not cumulative."""

    @property
    def sum_ms(self) -> int:
        """Sum of all durations in milliseconds."""


Value = int | float | BucketCounts
"""Value of a sample.

A histogram's buckets are in milliseconds; the exporter converts them to seconds.
"""

Sample = tuple[tuple[str, ...], Value]
"""Label values in the order of `Metric.labels`, and the value of the sample."""

Source = TypeVar("Source")


@dataclass(frozen=True, slots=True)
class Metric(Generic[Source]):
    """One metric.

    Attributes:
        name: Name that Prometheus shows, without the suffixes of histograms
            (``_bucket``, ``_sum``, ``_count``) and of `INFO` (``_info``).
        help: One sentence.
        labels: Names of the labels, without the label that names the source (`channel`,
            `observer` or `node`).
        samples: Function that returns the samples of a source. If it returns no
            samples, no series is exported.
        summable: Whether a sum over several sources is meaningful. If so, the exporter
            adds up the sources that get no label of their own, and exports the sum as
            the source `other`.
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
    """Return a metric without labels; if `read` returns None, no series is exported.

    By default, the metric is a counter if its name ends in ``_total``, else a gauge.
    """

    def samples(source: Source) -> Iterable[Sample]:
        value = read(source)
        return () if value is None else (((), value),)

    is_counter = name.endswith("_total")
    default = MetricKind.COUNTER if is_counter else MetricKind.GAUGE
    return Metric(name, kind or default, text, (), samples)


def in_seconds(milliseconds: int | None) -> float | None:
    """Convert milliseconds to seconds, Prometheus' base unit; None stays None."""
    return None if milliseconds is None else milliseconds / 1000
