"""Records a view's conclusions about single messages as the view reaches them.

If a view has a journal, the view records each conclusion about the watched messages, in
order. A trace of a message shows these conclusions, so the rules need no second
implementation.
"""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """One conclusion about one message.

    Attributes:
        key: Fingerprint of the message's id, or, if the message is a segment, of the
            whole payload.
        what: The kind of the conclusion; it has the name of the figure that counts it.
        time_ms: Event time of the evidence, or the deadline that passed, Unix ms.
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
        copy: How the view classified the newest frame.
        is_first: Whether the newest frame was composed shortly before its event time.
            If so, its sender now lacks the messages that the frame's filter does not
            contain.
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
