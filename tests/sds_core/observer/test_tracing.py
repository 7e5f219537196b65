"""What a trace shows about one participant."""

from __future__ import annotations

import pytest

from sds_core.observer.tracing import Person


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ((10, 20, 130, 140, 190), (20, 130, 190, 110)),
        # A late frame, before and after the message appeared, and from before it.
        ((20, 10, 130, 140, 190), (20, 130, 190, 110)),
        ((10, 20, 140, 130, 190), (20, 130, 190, 120)),
        ((10, 130, 140, 20, 190), (20, 130, 190, 120)),
        ((10, 20, 130, 190, 140), (20, 130, 190, 110)),
        ((130, 190, 140), (None, 130, 190, 60)),
    ],
)
def test_late_frames_do_not_move_times_back(
    times: tuple[int, ...], expected: tuple[int | None, ...]
) -> None:
    """The message appeared at 100."""
    person = Person("alice")
    for at_ms in times:
        person.heard(at_ms, 100)
    assert expected == (
        person.heard_before_ms,
        person.heard_after_ms,
        person.heard_last_ms,
        person.silent_ms,
    )
