"""Adds readable times to JSON documents.

A time is a number of Unix milliseconds, or nanoseconds if the field's name ends in
``_ns``. For each field with a time, this module adds a field with the same time as RFC
3339 in UTC. The name of the added field ends in ``_utc``, which replaces ``_ms`` or
``_ns``: ``since_utc`` for ``since``, and ``from_utc`` for ``from_ns``.
"""

from __future__ import annotations

from typing import Any

from sds_core.text import iso_time

SUFFIX = "_utc"

TIMES = frozenset(
    {
        "appeared_ms",
        "at_ms",
        "begin",
        "clock",
        "computed",
        "ended",
        "ended_ms",
        "first_event",
        "found",
        "from_ns",
        "generated_at",
        "heard",
        "holes",
        "kafka_answered",
        "lacking",
        "lacks_since",
        "last_event",
        "last_hole",
        "last_seen",
        "mirror_begin_ms",
        "newest_missing_ms",
        "one_percent",
        "reached",
        "reached_earliest",
        "reached_latest",
        "since",
        "timestamp_ms",
        "timestamp_ns",
        "to_ns",
    }
)
"""Names of fields whose value is a time, or a list or mapping of times."""

_BY_ID = frozenset({"causes", "channels", "plans", "views", "wrong_clocks"})
"""Names of fields whose value is a mapping with ids as keys.

An id may equal a name in `TIMES`, but is not the name of a field.
"""

_NS_PER_MS = 1_000_000


def with_utc(document: Any) -> Any:
    """Return a copy of a JSON document with an RFC 3339 field after each time field."""
    if isinstance(document, dict):
        found: dict[str, Any] = {}
        for name, value in document.items():
            if name in TIMES:
                found[name] = value
                found[utc_name(name)] = _printed(value, name.endswith("_ns"))
            elif name in _BY_ID and isinstance(value, dict):
                found[name] = {one: with_utc(inner) for one, inner in value.items()}
            else:
                found[name] = with_utc(value)
        return found
    if isinstance(document, list | tuple):
        return [with_utc(one) for one in document]
    return document


def utc_name(name: str) -> str:
    """Return the name of the RFC 3339 field that is added for the field `name`."""
    return name.removesuffix("_ms").removesuffix("_ns") + SUFFIX


def _printed(value: Any, is_ns: bool) -> Any:
    """Return a time, or a list or mapping of times, as RFC 3339.

    A time that is None or 0 becomes None.
    """
    if isinstance(value, dict):
        return {name: _printed(one, is_ns) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_printed(one, is_ns) for one in value]
    if not value:
        return None
    text = iso_time(value // _NS_PER_MS if is_ns else value)
    # Times outside the years 1 to 9999 have no RFC 3339 form.
    return text if text.endswith("Z") else None
