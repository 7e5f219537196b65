"""What a view concludes of single messages, while it concludes it.

A view without a journal does no more than compare it with None; with one it notes each
conclusion about the watched messages, in order. So what a trace says of a message is
what the view itself concluded, and not a second reading of its rules.
"""

from __future__ import annotations

from typing import NamedTuple


class Note(NamedTuple):
    """One conclusion about one message.

    Attributes:
        key: Fingerprint of the message's id, or of the payload of its segment.
        what: The conclusion, in the words of the figure that counts it.
        time_ms: Event time of what shows it, or the deadline that passed, Unix ms.
        who: Id of the participant that it is about; empty if it is about none.
    """

    key: int
    what: str
    time_ms: int
    who: str = ""


class Journal:
    """Takes the notes of one view.

    Attributes:
        keys: Fingerprints of the watched messages.
        copy: How the view classified the frame that it read last.
        is_first: Whether that frame was composed about when it was seen: what its
            filter does not hold, its sender lacked.
    """

    def __init__(self, keys: set[int]) -> None:
        self.keys = keys
        self.copy: object = None
        self.is_first = False
        self._notes: list[Note] = []

    def note(self, key: int, what: str, time_ms: int, who: str = "") -> None:
        """Note a conclusion, if the message is watched."""
        if key in self.keys:
            self._notes.append(Note(key, what, time_ms, who))

    def take(self) -> list[Note]:
        """Return the notes since the last call."""
        notes, self._notes = self._notes, []
        return notes
