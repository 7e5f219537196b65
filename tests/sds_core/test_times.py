"""Times in JSON stand as numbers, and beside them as RFC 3339."""

from __future__ import annotations

from typing import Any

import pytest

from sds_core.times import with_utc

MS = 1_790_000_000_123
TEXT = "2026-09-21T14:13:20.123Z"


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ({"since": MS}, {"since_utc": TEXT}),
        ({"ended": None}, {"ended_utc": None}),
        ({"ended_ms": MS}, {"ended_utc": TEXT}),
        ({"timestamp_ns": MS * 1_000_000 + 999}, {"timestamp_utc": TEXT}),
        ({"holes": [[MS, MS]]}, {"holes_utc": [[TEXT, TEXT]]}),
        ({"lacking": {"bob": MS}}, {"lacking_utc": {"bob": TEXT}}),
        # Outside the calendar, as a crafted record may have it.
        ({"found": 2**62}, {"found_utc": None}),
        ({"clock": 0}, {"clock_utc": None}),
        ({"interval_ms": 60_000, "why": "since"}, {}),
    ],
)
def test_time_has_its_text_beside_it(
    given: dict[str, Any], added: dict[str, Any]
) -> None:
    """The name says so, without the unit; durations have none."""
    assert with_utc(given) == given | added


def test_times_are_found_at_any_depth() -> None:
    """And the document itself stays as it was."""
    document = {"job": {"kafka_answered": MS}, "taps": [{"last_seen": MS}]}
    assert with_utc(document) == {
        "job": {"kafka_answered": MS, "kafka_answered_utc": TEXT},
        "taps": [{"last_seen": MS, "last_seen_utc": TEXT}],
    }
    assert document == {"job": {"kafka_answered": MS}, "taps": [{"last_seen": MS}]}


def test_ids_that_look_like_names_of_times_are_ids() -> None:
    """Senders choose the names of channels and participants; taps have any name.

    So do the variants of a plan.
    """
    hostile = {
        "channels": {"since": {"messages": 1}, "lacking": {"messages": 2}},
        "plans": {"found": {"changes": {"loss": "0.1"}}},
        "lacking": {"since": MS, "found": MS},
        "wrong_clocks": {"clock": 90_000},
    }
    found = with_utc(hostile)
    assert found["channels"] == hostile["channels"]
    assert found["plans"] == hostile["plans"]
    assert found["wrong_clocks"] == hostile["wrong_clocks"]
    assert found["lacking"] == hostile["lacking"]
    assert found["lacking_utc"] == {"since": TEXT, "found": TEXT}
