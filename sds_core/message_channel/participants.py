"""Other participants of the channel that have sent something lately."""

from __future__ import annotations

from sds_core.message_channel.profile import Profile


class Participants:
    """Ids of participants that sent a frame lately; sets the response groups (SDS-R).

    A participant that is silent for long counts as gone. Above the limit, the one that
    is silent longest is dropped.
    """

    __slots__ = ("_forgotten_after_ms", "_last_frame_ms", "_limit")

    def __init__(self, profile: Profile) -> None:
        self._forgotten_after_ms = profile.participant_forgotten_after_ms
        self._limit = profile.participants_limit
        # Participants with the oldest last frame come first.
        self._last_frame_ms: dict[str, int] = {}

    def __len__(self) -> int:
        """Return the number of other participants."""
        return len(self._last_frame_ms)

    def record_frame(self, name: str, now_ms: int) -> None:
        """Record that a participant sent a frame."""
        last_frame_ms = self._last_frame_ms
        last_frame_ms.pop(name, None)
        last_frame_ms[name] = now_ms
        oldest = next(iter(last_frame_ms))
        while (
            len(last_frame_ms) > self._limit
            or last_frame_ms[oldest] < now_ms - self._forgotten_after_ms
        ):
            del last_frame_ms[oldest]
            oldest = next(iter(last_frame_ms))

    def state(self) -> dict[str, int]:
        """Return when each participant last sent a frame, Unix ms, for a snapshot."""
        return dict(self._last_frame_ms)

    def restore(self, state: dict[str, int]) -> None:
        """Restore the result of `state`."""
        self._last_frame_ms = state
