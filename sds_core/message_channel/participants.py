"""Who else is in the channel, as far as it can be heard."""

from __future__ import annotations

from sds_core.message_channel.profile import Profile


class Participants:
    """The names heard of lately, for the number of response groups (SDS-R).

    Who is silent for long has left; of very many, those heard longest ago are
    forgotten.
    """

    __slots__ = ("_forgotten_after_ms", "_heard_ms", "_limit")

    def __init__(self, profile: Profile) -> None:
        self._forgotten_after_ms = profile.participant_forgotten_after_ms
        self._limit = profile.participants_limit
        # Those heard longest ago come first.
        self._heard_ms: dict[str, int] = {}

    def __len__(self) -> int:
        """Return how many others there are."""
        return len(self._heard_ms)

    def hear(self, name: str, now_ms: int) -> None:
        """Note that somebody has spoken."""
        heard_ms = self._heard_ms
        heard_ms.pop(name, None)
        heard_ms[name] = now_ms
        oldest = next(iter(heard_ms))
        while (
            len(heard_ms) > self._limit
            or heard_ms[oldest] < now_ms - self._forgotten_after_ms
        ):
            del heard_ms[oldest]
            oldest = next(iter(heard_ms))

    def state(self) -> dict[str, int]:
        """Return when each was heard, Unix ms: the state to keep."""
        return dict(self._heard_ms)

    def restore(self, state: dict[str, int]) -> None:
        """Take over what `state` gave."""
        self._heard_ms = state
