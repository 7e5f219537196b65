"""How many repair answers a participant gives in a time, and how many bytes.

The guide has no limit: a short frame that asks for everything would be answered with
all that is stored, and again after each further frame.
"""

from __future__ import annotations

from typing import NamedTuple

from sds_core.message_channel.profile import Profile


class AnswersGiven(NamedTuple):
    """What was answered in one sweep period.

    Attributes:
        period: number of the period since the participant's start.
        answers: messages broadcast in it.
        size_bytes: their bytes.
    """

    period: int
    answers: int
    size_bytes: int


class AnswerBudget:
    """The answers of the current sweep period (`Profile.repair_sweep_ms`).

    Args:
        profile: options of the participant.
        started_ms: start of the first period, Unix ms.

    Attributes:
        given: what was answered in the period of the last answer.
    """

    __slots__ = ("_profile", "_started_ms", "given")

    def __init__(self, profile: Profile, started_ms: int) -> None:
        self._profile = profile
        self._started_ms = started_ms
        self.given = AnswersGiven(0, 0, 0)

    def allows(self, now_ms: int) -> bool:
        """Return whether a further answer may be given now."""
        period = (now_ms - self._started_ms) // self._profile.repair_sweep_ms
        if period > self.given.period:
            self.given = AnswersGiven(period, 0, 0)
        return not self._is_spent()

    def spend(self, size_bytes: int) -> None:
        """Record an answer; the last one of a period may exceed its bytes."""
        period, answers, so_far = self.given
        self.given = AnswersGiven(period, answers + 1, so_far + size_bytes)

    def next_ms(self, due_ms: float) -> int:
        """Return the start of the first period with room for an answer.

        Args:
            due_ms: when the answer is due, Unix ms.
        """
        period_ms = self._profile.repair_sweep_ms
        periods = max(0, int(-((self._started_ms - due_ms) // period_ms)))
        if self._is_spent():
            periods = max(periods, self.given.period + 1)
        return self._started_ms + periods * period_ms

    def _is_spent(self) -> bool:
        return (
            self.given.answers >= self._profile.answers_per_sweep
            or self.given.size_bytes >= self._profile.answer_bytes_per_sweep
        )
