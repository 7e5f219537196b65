"""Stores a channel, so that it can resume after its process was killed.

The journal stores every input before its outputs are executed. The whole state may be a
hundred times as long as an input, so the state replaces the journal only after many
inputs. A restart loads the last state and applies the later inputs again. The restart
keeps only the events of the last input. It discards all other outputs, because each
output was already executed, or the input `Restarted` causes the output again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import msgspec

from sds_core.reliable_channel.channel import ReliableChannelCore
from sds_core.reliable_channel.errors import StateError
from sds_core.reliable_channel.events import Event
from sds_core.reliable_channel.inputs import Input
from sds_core.reliable_channel.outputs import Output

CHECKPOINT_ENTRIES = 500
"""If the journal has this number of entries, the state replaces the journal."""

CHECKPOINT_BYTES = 16 * 1024 * 1024
"""If the journal's entries reach this size, the state replaces the journal."""


class Stored(NamedTuple):
    """What a storage has stored for one channel.

    Attributes:
        state: The whole state that was stored last.
        entries: The journal's entries since then, in order.
    """

    state: bytes
    entries: Iterable[bytes]


class ChannelStorage(Protocol):
    """Stores one channel. When `append` or `replace` returns, the data is durable."""

    def load(self) -> Stored | None:
        """Return the stored content; None if nothing is stored."""

    def append(self, entry: bytes) -> None:
        """Add an entry to the journal."""

    def replace(self, state: bytes) -> None:
        """Store a state and empty the journal in one atomic step."""


class _Entry(msgspec.Struct, array_like=True, frozen=True):
    event: Input
    now_ms: int
    ciphertexts: list[bytes]


_decoder = msgspec.msgpack.Decoder(_Entry)


class StoredChannel:
    """A channel whose state is stored. Use this class instead of the core.

    Attributes:
        core: The channel. Apply inputs to the `StoredChannel`, not to the core.
        unconfirmed: Events of the last input before a restart. The process may have
            ended before or after the application received the events.
    """

    def __init__(
        self, core: ReliableChannelCore, storage: ChannelStorage, entries: int = 0
    ) -> None:
        self.core = core
        self.unconfirmed: list[Event] = []
        self._storage = storage
        self._entries = entries
        self._bytes = 0

    @classmethod
    def open(
        cls,
        storage: ChannelStorage,
        create: Callable[[], ReliableChannelCore],
        restore: Callable[[bytes], ReliableChannelCore],
    ) -> StoredChannel:
        """Resume a stored channel, or create one.

        After a resumption, pass `unconfirmed` to the application, and then apply
        `Restarted`.

        Raises:
            StateError: The stored state cannot be read, or belongs to another channel.
        """
        stored = storage.load()
        core = create()
        if stored is None:
            self = cls(core, storage)
            self.checkpoint()
            return self
        expected = _identity(core)
        core = restore(stored.state)
        if _identity(core) != expected:
            detail = f"the stored state belongs to {_identity(core)}, not to {expected}"
            raise StateError(detail)
        entries = 0
        unconfirmed: list[Event] = []
        for entries, raw in enumerate(stored.entries, 1):  # noqa: B007 - the last counts
            try:
                entry = _decoder.decode(raw)
            except msgspec.DecodeError as error:
                detail = f"an entry of the journal cannot be read: {error}"
                raise StateError(detail) from error
            unconfirmed = core.apply(
                entry.event, entry.now_ms, ciphertexts=entry.ciphertexts
            ).events
        self = cls(core, storage, entries)
        self.unconfirmed = unconfirmed
        return self

    @property
    def next_deadline_ms(self) -> float:
        """See `ReliableChannelCore`."""
        return self.core.next_deadline_ms

    def apply(self, event: Input, now_ms: int) -> Output:
        """Apply and store one input. Execute the returned output afterwards.

        Raises:
            NotStarted: See `ReliableChannelCore.apply`.
        """
        # The state replaces the journal before the input is added. Otherwise, the
        # journal would be empty, and a restart could not recover the input's events.
        if self._entries >= CHECKPOINT_ENTRIES or self._bytes >= CHECKPOINT_BYTES:
            self.checkpoint()
        output = self.core.apply(event, now_ms)
        entry = msgspec.msgpack.encode(_Entry(event, now_ms, output.ciphertexts))
        self._storage.append(entry)
        self._entries += 1
        self._bytes += len(entry)
        return output

    def checkpoint(self) -> None:
        """Replace the journal by the whole state."""
        self._storage.replace(self.core.snapshot())
        self._entries = 0
        self._bytes = 0


def _identity(core: ReliableChannelCore) -> str:
    return f"{core.sender_id!r} in {core.channel_id!r} on {core.content_topic!r}"
