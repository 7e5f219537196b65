"""Writes metrics in Prometheus' formats, as prometheus_client does, but faster.

prometheus_client escapes every name and label of every sample character by character.
With 200 labelled channels, escaping takes longer than the rest of a scrape. This module
formats labels only once if several samples have the same labels. It does not escape
names, because the code declares only names that need no escaping.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from copy import copy
from typing import NamedTuple, Protocol

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.utils import floatToGoString

from sds_core.text import visible

Labels = tuple[tuple[str, str], ...]


class Registry(Protocol):
    """The part of prometheus_client's registries that this module uses."""

    def collect(self) -> Iterable[Metric]:
        """Return all families."""


class Named(NamedTuple):
    """The metrics of a registry that have one of the names.

    A name is that of a metric or of one of its series. For example, the name of a
    histogram selects all its series, and the name with `_count` only one of them.
    """

    # `CollectorRegistry.restricted_registry` finds only collectors that declare their
    # names in advance. The collectors of this project declare none.

    registry: Registry
    names: Collection[str]

    def collect(self) -> Iterator[Metric]:
        """Yield the families, in the registry's order, with only the named series."""
        for family in self.registry.collect():
            is_whole = family.name in self.names
            found = [s for s in family.samples if is_whole or s.name in self.names]
            if found:
                restricted = copy(family)
                restricted.samples = found
                yield restricted


Encoder = Callable[[Registry], bytes]


def encoder(accept: str) -> tuple[Encoder, str]:
    """Return encoder and content type of the format that ``Accept`` requests."""
    try:
        library, content_type = choose_encoder(accept)
    # prometheus_client expects that versions consist of numbers.
    except (TypeError, ValueError):
        library, content_type = choose_encoder("")
    _, _, escaping = content_type.partition("escaping=")
    if escaping not in ("", "underscores", "allow-utf-8"):
        # prometheus_client writes the other escapings, which would change names that
        # contain underscores. No scraper requests these escapings.
        return library, content_type
    if content_type.startswith("application/openmetrics-text"):
        return openmetrics, content_type
    return text, content_type


def text(registry: Registry) -> bytes:
    """Return a registry's families in Prometheus' text format."""
    lines: list[str] = []
    known: dict[Labels, str] = {}
    for family in registry.collect():
        suffix, kind = _TEXT.get(family.type, ("", family.type))
        about = family.documentation.replace("\\", r"\\").replace("\n", r"\n")
        lines.append(f"# HELP {family.name}{suffix} {about}\n")
        lines.append(f"# TYPE {family.name}{suffix} {kind}\n")
        _add_samples(lines, family, known)
    return "".join(lines).encode()


def openmetrics(registry: Registry) -> bytes:
    """Return a registry's families in OpenMetrics format, which Prometheus prefers."""
    lines: list[str] = []
    known: dict[Labels, str] = {}
    for family in registry.collect():
        lines.append(f"# HELP {family.name} {_escaped(family.documentation)}\n")
        lines.append(f"# TYPE {family.name} {family.type}\n")
        _add_samples(lines, family, known)
    lines.append("# EOF\n")
    return "".join(lines).encode()


_TEXT = {"counter": ("_total", "counter"), "info": ("_info", "gauge")}
"""By OpenMetrics type: the suffix that the text format adds to a metric's name, and the
metric's type in the text format."""


def _add_samples(lines: list[str], family: Metric, known: dict[Labels, str]) -> None:
    for sample in family.samples:
        labels = tuple(sample.labels.items())
        written = known.get(labels)
        if written is None:
            written = known[labels] = _written(labels)
        value = floatToGoString(sample.value)  # type: ignore[no-untyped-call]
        lines.append(f"{sample.name}{written} {value}\n")


def _written(labels: Labels) -> str:
    if not labels:
        return ""
    pairs = [f'{name}="{_escaped(visible(value))}"' for name, value in sorted(labels)]
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
