"""Settings of the model as an operator gives them."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import Any

import pytest

from sds_core.observer.settings import DEFAULTS
from sds_core.observer.settings_table import (
    changed,
    read_values,
    settings_of,
    values_of,
)
from sds_core.reading import TableError


def test_values_that_are_given_replace_the_defaults() -> None:
    """All others stay."""
    values = read_values({"ack_deadline_ms": 60_000, "saturated_rate": 0.05})
    assert values == {"ack_deadline_ms": 60_000, "saturated_rate": 0.05}
    assert changed(settings_of(values)) == values


def test_every_setting_can_be_given_with_its_default() -> None:
    """Each has a type, and its default is allowed."""
    assert read_values(values_of(DEFAULTS)) == values_of(DEFAULTS)
    assert asdict(DEFAULTS).keys() - values_of(DEFAULTS) == {"forget_ms"}
    assert changed(DEFAULTS) == {}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"ack_deadline_s": 60}, ["has no key 'ack_deadline_s'", "ack_deadline_ms"]),
        ({"ack_deadline_ms": 0}, ["observer.ack_deadline_ms is 0", "1"]),
        ({"ack_deadline_ms": "60"}, ["observer.ack_deadline_ms is '60'"]),
        ({"undelivered_percent": 101}, ["undelivered_percent is 101", "100"]),
        ({"saturated_rate": 2.0}, ["saturated_rate is 2.0"]),
    ],
)
def test_wrong_value_is_refused_with_place_value_and_what_is_allowed(
    table: dict[str, Any], words: list[str]
) -> None:
    """In one line."""
    with pytest.raises(TableError) as error:
        read_values(table)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        (
            {"ack_deadline_ms": 3_600_000},
            "ack_deadline_ms is 3600000, but must be below 3600000, the value of "
            "observer.horizon_ms",
        ),
        (
            {"settle_ms": 300_000},
            "settle_ms is 300000, but must be below 300000, the value of "
            "observer.gap_deadline_ms",
        ),
        (
            {"t_max_ms": "30s"},
            "t_min_ms is 30000, but must be below 30000, the value of "
            "observer.t_max_ms; if a checkpoint has these values, omit them from "
            "[observer]",
        ),
    ],
)
def test_values_must_fit_each_other(table: dict[str, Any], text: str) -> None:
    """Nothing is followed beyond the horizon."""
    with pytest.raises(ValueError, match=re.escape(text)):
        read_values(table)


def test_stored_values_of_an_older_release_are_allowed() -> None:
    """Older releases allowed T_min at or above T_max."""
    assert read_values({"t_min_ms": 120_000}, are_stored=True) == {"t_min_ms": 120_000}
    with pytest.raises(ValueError, match="gap_deadline_ms"):
        read_values({"settle_ms": 300_000}, are_stored=True)
