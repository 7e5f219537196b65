"""Requests for repair and their answers (docs/figures.md, 7)."""

from __future__ import annotations

from tests.support.reference.broadcasts import WINDOWS_MS, Broadcasts
from tests.support.reference.seen import Seen


class Repairs(Broadcasts):
    """Adds the requests for each id, their answers, and those without one."""

    def episodes(self, message_id: str) -> tuple[list[int], list[int], list[Seen]]:
        """Response times, times of expiry, and all responses of an id."""
        answers: list[int] = []
        expired: list[int] = []
        responses: list[Seen] = []
        began: int | None = None
        ends = -1
        for one in self.broadcasts:
            if began is not None and one.clock > ends:
                expired.append(ends)
                began = None
            is_copy = one.has_known_id and one.message_id == message_id
            if is_copy and one not in self.collisions and one.clock <= ends:
                responses.append(one)
                if began is not None:
                    answers.append(max(0, one.at - began))
                    began = None
            if message_id in one.requests():
                began = one.at if began is None else began
                ends = one.clock + WINDOWS_MS[one.dialect]
        if began is not None and self.end > ends:
            expired.append(ends)
        return answers, expired, responses
