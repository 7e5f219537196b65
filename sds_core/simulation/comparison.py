"""Compares the truth about a simulation with a monitor's report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Comparison:
    """A figure's true value and the value in the monitor's report.

    Attributes:
        channel: Id of the channel, or name of the MVDS group; empty for the totals.
        figure: Name of the figure in the report. If objects of the report are nested,
            dots join their names: `ack_latency_ms.definite.sum`.
    """

    channel: str
    figure: str
    truth: object
    found: object

    @property
    def same(self) -> bool:
        """Whether the monitor's value equals the true value."""
        return self.truth == self.found


def compare(
    truth: Mapping[str, Any], report: Mapping[str, Any]
) -> Iterator[Comparison]:
    """Yield a comparison for each figure of a truth. Totals come first.

    A channel or group that only the report has also gives a comparison.
    """
    if "channels" in truth:
        yield from _compared_channels(truth, report)
    for prefix, views in truth.get("views", {}).items():
        found = report.get("views", {}).get(prefix, {})
        yield from _compared("", views["totals"], found.get("totals", {}))
        groups = found.get("views", {})
        for group in groups.keys() - views["views"].keys():
            yield Comparison(group, "group", "is none", "is one")
        for group, figures in views["views"].items():
            yield from _compared(group, figures, groups.get(group, {}))


def _compared_channels(
    truth: Mapping[str, Any], report: Mapping[str, Any]
) -> Iterator[Comparison]:
    latencies = [
        pair for one in truth["channels"].values() for pair in one["ack_latencies"]
    ]
    totals = truth["totals"] | {"ack_latencies": latencies}
    yield from _compared("", totals, report["totals"])
    for channel in report["channels"].keys() - truth["channels"].keys():
        yield Comparison(channel, "channel", "is none", "is one")
    for channel, figures in truth["channels"].items():
        yield from _compared(channel, figures, report["channels"].get(channel, {}))


def _compared(
    channel: str, truth: Mapping[str, Any], found: Mapping[str, Any]
) -> Iterator[Comparison]:
    for figure, value in _flat(truth):
        if figure == "ack_latencies":
            # The truth lists all latencies. A report without details has only their
            # count and sum, so the sums are compared.
            yield Comparison(
                channel,
                "ack_latency_ms.definite.sum",
                sum(latency for _, latency in value),
                _at(found, "ack_latency_ms.definite.sum"),
            )
        elif not figure.startswith("sender_side"):
            yield Comparison(channel, figure, value, _at(found, figure))


def _flat(figures: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in figures.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _at(figures: Any, path: str) -> Any:
    for name in path.split("."):
        figures = figures.get(name) if isinstance(figures, Mapping) else None
    return figures
