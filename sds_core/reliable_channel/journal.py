"""A channel that continues after its process was killed.

Every input is appended to a journal before what it causes is done; from time to time
the whole state replaces the journal. A restart takes the last state and applies the
inputs after it again, whose outputs it throws away: they were done, or are done anew
after `Restarted`.

An input is as long as what arrived, and the whole state may be a hundred times as long:
so to append costs little, however much the channel remembers.
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
"""Entries after which the state replaces the journal: a restart applies fewer."""

CHECKPOINT_BYTES = 16 * 1024 * 1024
"""Size of the entries after which it does."""


class Stored(NamedTuple):
    """What a storage holds.

    Attributes:
        state: The last whole state.
        entries: The journal after it, in order.
    """

    state: bytes
    entries: Iterable[bytes]


class ChannelStorage(Protocol):
    """Holds one channel; what a call has written survives the process."""

    def load(self) -> Stored | None:
        """Return what was stored; None if nothing was."""

    def append(self, entry: bytes) -> None:
        """Add an entry to the journal."""

    def replace(self, state: bytes) -> None:
        """Store a state, and empty the journal; both or neither."""


class _Entry(msgspec.Struct, array_like=True, frozen=True):
    event: Input
    now_ms: int
    ciphertexts: list[bytes]


_decoder = msgspec.msgpack.Decoder(_Entry)


class StoredChannel:
    """A channel with a storage; use it in place of the core.

    Args:
        core: The channel.
        storage: Its storage.
        entries: Number of entries in the journal that led to this state.

    Attributes:
        core: The channel; apply inputs here, not to it.
        unconfirmed: Events of the last input before a restart. The process may have
            ended before the application had them, or just after.
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
        """Continue a stored channel, or create one.

        Of a continued one, give `unconfirmed` to the application, then apply
        `Restarted`.

        Args:
            storage: The storage.
            create: Makes a new channel.
            restore: Makes the channel of a state.

        Raises:
            StateError: The stored state cannot be continued, or is of another channel.
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
            detail = f"it is of {_identity(core)}, not of {expected}"
            raise StateError(detail)
        entries = 0
        unconfirmed: list[Event] = []
        for entries, raw in enumerate(stored.entries, 1):  # noqa: B007 - the last counts
            try:
                entry = _decoder.decode(raw)
            except msgspec.DecodeError as error:
                detail = f"an entry of its journal cannot be read: {error}"
                raise StateError(detail) from error
            unconfirmed = core.apply(
                entry.event, entry.now_ms, ciphertexts=entry.ciphertexts
            ).events
        self = cls(core, storage, entries)
        self.unconfirmed = unconfirmed
        return self

    @property
    def next_deadline_ms(self) -> float:
        """When to apply `Advance`, Unix ms; inf if nothing is planned."""
        return self.core.next_deadline_ms

    def apply(self, event: Input, now_ms: int) -> Output:
        """Apply one input, and store it; then do what the output says.

        Raises:
            NotStarted: See `ReliableChannelCore.apply`.
        """
        # Not after the input: its events would be neither in the journal nor, if the
        # process ends here, with the application.
        if self._entries >= CHECKPOINT_ENTRIES or self._bytes >= CHECKPOINT_BYTES:
            self.checkpoint()
        output = self.core.apply(event, now_ms)
        entry = msgspec.msgpack.encode(_Entry(event, now_ms, output.ciphertexts))
        self._storage.append(entry)
        self._entries += 1
        self._bytes += len(entry)
        return output

    def checkpoint(self) -> None:
        """Have the state replace the journal."""
        self._storage.replace(self.core.snapshot())
        self._entries = 0
        self._bytes = 0


def _identity(core: ReliableChannelCore) -> str:
    return f"{core.sender_id!r} in {core.channel_id!r} on {core.content_topic!r}"
