"""Queries that several panels use."""

from __future__ import annotations

from dashboards.panels import queries
from dashboards.panels.base import Query


def per_second(metric: str, scope: str, legend: str, *by: str) -> Query:
    """Return a query: a counter per second, summed, by labels, with a legend."""
    return Query(queries.rate(queries.select(metric, scope), *by), legend)


def per_step(metric: str, scope: str, legend: str, *by: str) -> Query:
    """Return a query: growth of a counter per step of the graph, summed, by labels."""
    return Query(queries.increase(queries.select(metric, scope), *by), legend)


def now(metric: str, scope: str, legend: str, *by: str) -> Query:
    """Return a query: the maximum of a gauge, by labels."""
    return Query(queries.greatest(queries.select(metric, scope), *by), legend)


def quantiles(histogram: str, scope: str, **labels: str) -> list[Query]:
    """Return queries: median, 95 % and 99 % quantile of a histogram."""
    return [
        Query(
            queries.quantile(q, histogram, scope, **labels),
            " ".join([f"p{q * 100:g}", *labels.values()]),
        )
        for q in (0.5, 0.95, 0.99)
    ]
