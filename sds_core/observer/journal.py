"""Records a view's conclusions about single messages as the view reaches them.

If a view has a journal, the view records each conclusion about the watched messages, in
order. A trace of a message shows these conclusions. The trace thus needs no
implementation of the view's rules.
"""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """One conclusion about one message.

    Attributes:
        key: Fingerprint of the message's id. If the conclusion concerns a segmented
            payload, `SeenSegment.payload`.
        what: The kind of the conclusion, usually the name of the figure that counts
            conclusions of this kind.
        time_ms: Event time of the evidence for the conclusion, Unix ms. If the evidence
            is that a deadline passed, the deadline.
        who: Id of the participant that the conclusion concerns; empty if none.
    """

    key: int
    what: str
    time_ms: int
    who: str = ""


class Journal:
    """Records the conclusions of one view as notes.

    Attributes:
        keys: Each `Note.key` that is recorded; the watched messages have these keys.
        copy: How the view classified the frame that it processed last, for example as
            a duplicate.
        is_first: Whether the frame that the view processed last was composed shortly
            before its event time. If so, the frame's sender lacked at this time each
            message that the frame's filter does not contain.
        is_old: Whether the MVDS payload that the view processed last was older than the
            retention window. The view only counts the records of such a payload.
    """

    def __init__(self, keys: set[int]) -> None:
        self.keys = keys
        self.copy: object = None
        self.is_first = False
        self.is_old = False
        self._notes: list[Note] = []

    def note(self, key: int, what: str, time_ms: int, who: str = "") -> None:
        """Record a conclusion, if the message is watched."""
        if key in self.keys:
            self._notes.append(Note(key, what, time_ms, who))

    def take(self) -> list[Note]:
        """Return the notes that were recorded since the last call, in order."""
        notes, self._notes = self._notes, []
        return notes
