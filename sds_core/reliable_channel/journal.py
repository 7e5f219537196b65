"""Stores a channel, so that it can resume after its process was killed.

The journal stores every input before its outputs are executed. The whole state may be a
hundred times as long as an input, so a snapshot of the state replaces the journal only
after many inputs. A restart loads this snapshot, and applies the inputs in the journal
again. From their outputs, the restart keeps only the events that the application may
not have received. Every other output was already executed, or the input `Restarted`
causes it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import msgspec

from sds_core.reliable_channel.channel import ReliableChannelCore
from sds_core.reliable_channel.errors import StateError
from sds_core.reliable_channel.events import Event
from sds_core.reliable_channel.inputs import Input, Restarted
from sds_core.reliable_channel.outputs import Output

CHECKPOINT_ENTRIES = 500
"""If the journal has this number of entries, a snapshot replaces it."""

CHECKPOINT_BYTES = 16 * 1024 * 1024
"""If the journal's entries reach this total size, a snapshot replaces them."""


class Stored(NamedTuple):
    """The stored data of one channel.

    Attributes:
        state: The latest snapshot of the whole state.
        entries: The journal's entries after the snapshot, in order.
    """

    state: bytes
    entries: Iterable[bytes]


class ChannelStorage(Protocol):
    """Stores one channel. When `append` or `replace` returns, its data is durable."""

    def load(self) -> Stored | None:
        """Return the stored data; None if nothing is stored."""

    def append(self, entry: bytes) -> None:
        """Add an entry to the journal."""

    def replace(self, state: bytes) -> None:
        """Store a state and empty the journal in one atomic step."""


class _Entry(msgspec.Struct, array_like=True, frozen=True):
    """An input.

    Attributes:
        while_emitting: Whether the application still had to receive events of earlier
            inputs.
        may_set_back: Whether `Restarted` may set the channel's time back.
    """

    event: Input
    now_ms: int
    ciphertexts: list[bytes]
    # An entry that was stored by a release before 1.1.0 lacks this value.
    while_emitting: bool = False
    # An entry that was stored by a release that never set the time back lacks this
    # value.
    may_set_back: bool = False


_decoder = msgspec.msgpack.Decoder(_Entry)


class StoredChannel:
    """A channel whose state is stored, so that it can resume after a restart.

    Attributes:
        core: The channel. Apply inputs to the `StoredChannel`, not to the core.
        unconfirmed: Events from before the restart that the application may not have
            received before the process ended.
    """

    def __init__(
        self, core: ReliableChannelCore, storage: ChannelStorage, entries: int = 0
    ) -> None:
        self.core = core
        self.unconfirmed: list[Event] = []
        self._storage = storage
        self._entries = entries
        self._bytes = 0
        self._is_due = False

    @classmethod
    def open(
        cls,
        storage: ChannelStorage,
        create: Callable[[], ReliableChannelCore],
        restore: Callable[[bytes], ReliableChannelCore],
    ) -> StoredChannel:
        """Resume a stored channel, or create one.

        If the channel was resumed, pass `unconfirmed` to the application, and then
        apply `Restarted`. Alternatively, apply `Restarted` with `while_emitting` before
        you pass `unconfirmed` to the application.

        Raises:
            StateError: The stored data is invalid, or belongs to another channel.
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
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                detail = f"an entry of the journal cannot be read: {error}"
                raise StateError(detail) from error
            now_ms = entry.now_ms
            if not entry.may_set_back:
                now_ms = max(now_ms, core.latest_ms)
            output = core.apply(entry.event, now_ms, ciphertexts=entry.ciphertexts)
            earlier = unconfirmed if entry.while_emitting else []
            unconfirmed = earlier + output.events
        self = cls(core, storage, entries)
        self.unconfirmed = unconfirmed
        return self

    @property
    def next_deadline_ms(self) -> float:
        """See `ReliableChannelCore`."""
        return self.core.next_deadline_ms

    def apply(
        self, event: Input, now_ms: int, *, while_emitting: bool = False
    ) -> Output:
        """Apply and store one input. The caller then executes the returned output.

        Args:
            event: The input.
            now_ms: Unix ms.
            while_emitting: Whether the application still has to receive events of
                earlier inputs. For example, the application calls `send` while it
                handles an event, and more events follow.

        Raises:
            NotStarted: See `ReliableChannelCore.apply`.
        """
        # A full journal is replaced before the new input is added. If it were replaced
        # afterwards, the input would not be in the journal, and a restart could not
        # recover the input's events.
        is_full = self._entries >= CHECKPOINT_ENTRIES or self._bytes >= CHECKPOINT_BYTES
        if (is_full or self._is_due) and not while_emitting:
            self.checkpoint()
        output = self.core.apply(event, now_ms)
        # `Restarted` may change the options, and a replay of later inputs needs them.
        self._is_due |= isinstance(event, Restarted)
        entry = msgspec.msgpack.encode(
            _Entry(event, now_ms, output.ciphertexts, while_emitting, may_set_back=True)
        )
        self._storage.append(entry)
        self._entries += 1
        self._bytes += len(entry)
        return output

    def checkpoint(self) -> None:
        """Store a snapshot of the whole state, and empty the journal."""
        self._storage.replace(self.core.snapshot())
        self._is_due = False
        self._entries = 0
        self._bytes = 0


def _identity(core: ReliableChannelCore) -> str:
    return f"{core.sender_id!r} in {core.channel_id!r} on {core.content_topic!r}"
