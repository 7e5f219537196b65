"""Queries of panels, with the legends of their series."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dashboards.panels import queries


@dataclass(frozen=True, slots=True)
class Query:
    """An expression and the legend of its series.

    Attributes:
        is_per_step: Whether each value is the number of events in one step of a graph.
    """

    expression: str
    legend: str = ""
    is_per_step: bool = False


def per_second(metric: str, scope: str, legend: str, **labels: str) -> Query:
    """Return a query for a counter's rates, summed by the labels in the legend."""
    return Query(queries.rate(metric, scope, *_labels(legend), **labels), legend)


def per_step(metric: str, scope: str, legend: str, **labels: str) -> Query:
    """Return a query for a counter's growth in each step of a graph.

    The growth is summed by the labels in the legend.
    """
    grown = queries.increase(metric, scope, *_labels(legend), **labels)
    return Query(grown, legend, is_per_step=True)


def now(metric: str, scope: str, legend: str, **labels: str) -> Query:
    """Return a query for a gauge's maximum, grouped by the labels in the legend."""
    return Query(queries.greatest(metric, scope, *_labels(legend), **labels), legend)


def sums(metric: str, scope: str, legend: str, **labels: str) -> Query:
    """Return a query for a gauge's sum, grouped by the labels in the legend."""
    return Query(queries.total(metric, scope, *_labels(legend), **labels), legend)


def _labels(legend: str) -> list[str]:
    return re.findall(r"{{(\w+)}}", legend)


def quantiles(histogram: str, scope: str, **labels: str) -> list[Query]:
    """Return queries for the median, the 95 % and the 99 % quantile of a histogram."""
    return [
        Query(
            queries.quantile(q, histogram, scope, **labels),
            " ".join([f"p{q * 100:g}", *labels.values()]),
        )
        for q in (0.5, 0.95, 0.99)
    ]
