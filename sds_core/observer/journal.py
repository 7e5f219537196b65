"""Records each conclusion about a single message when the view draws the conclusion.

A view with a journal records each conclusion about the watched messages, in order. A
trace therefore shows the view's own conclusions, and needs no second implementation of
the rules.
"""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """One conclusion about one message.

    Attributes:
        key: Fingerprint of the message's id, or of the payload of its segment.
        what: The kind of the conclusion, named as the figure that counts it.
        time_ms: Event time of the evidence, or deadline that passed, Unix ms.
        who: Id of the participant that the conclusion concerns; empty if none.
    """

    key: int
    what: str
    time_ms: int
    who: str = ""


class Journal:
    """Records the notes of one view.

    Attributes:
        keys: Fingerprints of the watched messages.
        copy: How the view classified the last frame.
        is_first: Whether the last frame was composed shortly before its own event time.
            A sender lacks the messages that the filter of its new frame does not hold.
    """

    def __init__(self, keys: set[int]) -> None:
        self.keys = keys
        self.copy: object = None
        self.is_first = False
        self._notes: list[Note] = []

    def note(self, key: int, what: str, time_ms: int, who: str = "") -> None:
        """Record a conclusion, if the message is watched."""
        if key in self.keys:
            self._notes.append(Note(key, what, time_ms, who))

    def take(self) -> list[Note]:
        """Return the notes since the last call."""
        notes, self._notes = self._notes, []
        return notes
