"""Reads and checks settings of the model from a table (docs/figures.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from sds_core.durations import parse_duration_ms
from sds_core.observer.settings import DEFAULTS, ObserverSettings
from sds_core.reading import TableError, read

Values = Mapping[str, int | float]
"""Values of some settings, by their names in `ObserverSettings`."""

_DAY_MS = 86_400_000

# The upper limits exist because high values increase the size of the state and the cost
# of a frame. A duration of more than a day, or a number above a million, is probably a
# mistake.
_DURATION = Annotated[int, Meta(ge=1, le=_DAY_MS)]
_NUMBER = Annotated[int, Meta(ge=1, le=1_000_000)]
_PERCENT = Annotated[int, Meta(ge=0, le=100)]
_RATIO = Annotated[float, Meta(gt=0, lt=1)]


_BY_FLAG = frozenset({"forget_ms"})
"""Settings that a flag of the command `run` sets, and that a table cannot set.

The flag may have another value at each startup.
"""


def _type_of(name: str) -> Any:
    if isinstance(getattr(DEFAULTS, name), float):
        return _RATIO
    if name.endswith("_ms"):
        return _DURATION
    return _PERCENT if name.endswith("_percent") else _NUMBER


_TABLE = msgspec.defstruct(
    "ObserverTable",
    [
        (one.name, _type_of(one.name) | UnsetType, UNSET)
        for one in fields(ObserverSettings)
        if one.name not in _BY_FLAG
    ],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
)
"""Type of a table. Its fields are the settings that no flag sets.

A setting that the table omits is UNSET.
"""

_BELOW = {
    "ack_deadline_ms": "horizon_ms",
    "delivery_deadline_ms": "horizon_ms",
    "gap_deadline_ms": "horizon_ms",
    "repair_window_spec_ms": "horizon_ms",
    "repair_window_nim_ms": "horizon_ms",
    "settle_ms": "gap_deadline_ms",
}
"""For each setting that has an upper limit in another setting, this other setting.

The value of the first setting must be lower than the value of the other.
"""

_BELOW_UNLESS_STORED = {"t_min_ms": "t_max_ms"}
"""Like `_BELOW`, but a checkpoint of an older release may have other values."""


def read_values(table: Mapping[str, Any], are_stored: bool = False) -> Values:
    """Check the values of a table, and return them.

    A duration in the table may be a text such as 5m; it is returned in milliseconds.

    Args:
        table: Values by the names of settings.
        are_stored: Whether the table is from a checkpoint. An older release may have
            allowed values that are refused now.

    Raises:
        sds_core.reading.TableError: A name is unknown, or a value is not allowed.
        ValueError: Values contradict each other.
    """
    plain = {name: _plain(name, value) for name, value in table.items()}
    given = msgspec.structs.asdict(read(plain, _TABLE, "observer"))
    values = {name: value for name, value in given.items() if value is not UNSET}
    settings = settings_of(values)
    if not are_stored:
        remedy = "; if a checkpoint has these values, omit them from [observer]"
        _check_below(settings, _BELOW_UNLESS_STORED, remedy)
    return values


def _plain(name: str, value: Any) -> Any:
    if not (name.endswith("_ms") and isinstance(value, str)):
        return value
    if value[-1:].isdigit():
        # If a text has no unit, its author may have meant seconds. The text is not
        # converted, so `read` refuses it.
        return value
    try:
        return round(parse_duration_ms(value, "ms"))
    except ValueError as error:
        place = f"observer.{name}"
        raise TableError(place, f"has a wrong value: {error}") from None


def settings_of(values: Values) -> ObserverSettings:
    """Return settings with these values; the other settings have their defaults.

    Raises:
        ValueError: Values contradict each other.
    """
    given: dict[str, Any] = dict(values)
    settings = ObserverSettings(**given)
    _check_below(settings, _BELOW)
    return settings


def _check_below(
    settings: ObserverSettings, limits: Mapping[str, str], remedy: str = ""
) -> None:
    for name, limit in limits.items():
        value_ms, limit_ms = getattr(settings, name), getattr(settings, limit)
        if value_ms >= limit_ms:
            message = (
                f"observer.{name} is {value_ms}, but must be below {limit_ms}, the "
                f"value of observer.{limit}{remedy}"
            )
            raise ValueError(message)


def values_of(settings: ObserverSettings) -> dict[str, int | float]:
    """Return all values by name, except the values that a flag sets."""
    values = asdict(settings)
    return {name: values[name] for name in values if name not in _BY_FLAG}


def changed(settings: ObserverSettings) -> dict[str, int | float]:
    """Return the values that differ from the defaults, by name."""
    defaults = values_of(DEFAULTS)
    return {
        name: value
        for name, value in values_of(settings).items()
        if value != defaults[name]
    }
