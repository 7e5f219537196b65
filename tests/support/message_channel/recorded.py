"""A participant whose changes are stored."""

from __future__ import annotations

from random import Random

from sds_core.message_channel import MessageChannel, Profile
from tests.support.message_channel.repair_steps import state


class Recorded:
    """A participant whose snapshot was stored once, and then all changes."""

    def __init__(self, channel: MessageChannel) -> None:
        self.channel = channel
        channel.record_changes()
        self.snapshot = channel.snapshot()
        self.changes: list[bytes] = []

    def restored(self, profile: Profile | None = None) -> MessageChannel:
        """The participant after a sudden end, with other random numbers."""
        self.changes += self.channel.take_changes()
        return MessageChannel.restore(
            self.snapshot,
            changes=self.changes,
            random=Random("other"),
            profile=profile or self.channel.profile,
        )

    def assert_whole(self) -> None:
        """Check that nothing is lost in a sudden end now.

        But the times of calls that changed nothing, which are not recorded.
        """
        again = self.restored()
        found, expected = state(again), state(self.channel)
        assert found.last_ms is not None
        assert expected.last_ms is not None
        assert found.last_ms <= expected.last_ms
        found.last_ms = expected.last_ms
        assert found == expected
        assert again.next_deadline_ms == self.channel.next_deadline_ms
