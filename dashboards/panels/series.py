"""Series that several panels show."""

from __future__ import annotations

from dashboards.panels import queries
from dashboards.panels.base import Query


def per_second(metric: str, scope: str, legend: str, *by: str) -> Query:
    """A counter per second, summed, by labels; the legend may name them."""
    return Query(queries.rate(queries.select(metric, scope), *by), legend)


def per_step(metric: str, scope: str, legend: str, *by: str) -> Query:
    """What a counter grew by per step of the graph, summed, by labels."""
    return Query(queries.increase(queries.select(metric, scope), *by), legend)


def now(metric: str, scope: str, legend: str, *by: str) -> Query:
    """A gauge, its maximum by labels."""
    return Query(queries.greatest(queries.select(metric, scope), *by), legend)


def quantiles(histogram: str, scope: str, **labels: str) -> list[Query]:
    """Median, 95 % and 99 % of a histogram, with the labels' values in the legend."""
    return [
        Query(
            queries.quantile(q, histogram, scope, **labels),
            " ".join([f"p{q * 100:g}", *labels.values()]),
        )
        for q in (0.5, 0.95, 0.99)
    ]
