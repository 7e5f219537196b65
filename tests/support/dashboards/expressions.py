"""Extracts the PromQL of finished dashboards, as Grafana sends it to a server."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from grafana_foundation_sdk.models import dashboard as models
from grafana_foundation_sdk.models.prometheus import Dataquery

_VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}")


class Expression(NamedTuple):
    """One query of one panel; `expr` still holds Grafana's variables."""

    dashboard: str
    panel: str
    expr: str


def panels(dashboard: models.Dashboard) -> Iterator[models.Panel]:
    """Return all panels of a dashboard except the headings of rows."""
    yield from (p for p in dashboard.panels or () if isinstance(p, models.Panel))


def expressions(dashboard: models.Dashboard) -> list[Expression]:
    """Return every query of every panel, in order."""
    return [
        Expression(dashboard.uid or "", panel.title or "", target.expr)
        for panel in panels(dashboard)
        for target in panel.targets or ()
        if isinstance(target, Dataquery)
    ]


def substitute(expr: str, values: Mapping[str, str]) -> str:
    """Return an expression with Grafana's variables replaced.

    Args:
        expr: Expression as in a panel.
        values: Values by the variables' names, such as `job` or `__rate_interval`.

    Raises:
        KeyError: A variable has no value.
    """
    return _VARIABLE.sub(lambda match: values[match[1] or match[2]], expr)
