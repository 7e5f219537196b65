"""Repeats recorded changes after a snapshot; they are recorded in `changes`."""

from __future__ import annotations

from sds_core.message_channel.changes import Call, Change
from sds_core.message_channel.delivery import Delivery
from sds_core.message_channel.errors import SnapshotError
from sds_core.message_channel.framing import Sending
from sds_core.message_channel.parts import Behaviour, Parts
from sds_core.message_channel.reception import Reception
from sds_core.message_channel.sweeps import Sweeps
from sds_core.wire import WireError, decode


class Replay(Behaviour):
    """Changes a participant's state as recorded calls did.

    Args:
        parts: The participant's state.
        sending: Adds its own messages to it.
        reception: Takes the frames of others into it.
        delivery: Delivers what waits for messages that the application has.
        sweeps: Changes it with the time.
    """

    def __init__(
        self,
        parts: Parts,
        sending: Sending,
        reception: Reception,
        delivery: Delivery,
        sweeps: Sweeps,
    ) -> None:
        super().__init__(parts)
        self._sending = sending
        self._reception = reception
        self._delivery = delivery
        self._sweeps = sweeps

    def repeat(self, change: Change) -> None:
        """Repeat the next change; one that the snapshot contains is skipped.

        Raises:
            SnapshotError: A change before it is missing, or its frame cannot be read.
        """
        if not self._changes.is_next(change):
            return
        try:
            self._repeat(change)
        except WireError as error:
            raise SnapshotError(str(error)) from error
        # Noting a hint takes no time.
        if change.call is not Call.HINT:
            self._uptime.last_ms = change.now_ms
        self._sync.next_ms = change.next_sync_ms

    def _repeat(self, change: Change) -> None:
        now_ms = change.now_ms
        match change.call:
            case Call.RESUMED:
                self._sweeps.resume(now_ms)
            case Call.SENT:
                self._sending.repeat(change.value, now_ms)
            case Call.RECEIVED:
                frame = decode(change.value)
                self._reception.receive(frame, change.value, change.hint, now_ms)
            case Call.COPY:
                self._reception.take_copy(change.message_id, change.hint)
            case Call.HINT:
                self._reception.note_hint(change.message_id, change.hint)
            case Call.MET:
                self._delivery.met_elsewhere(change.message_id, now_ms)
            case Call.SWEEP_INCOMING:
                self._sweeps.incoming(now_ms)
            case Call.SWEEP_OUTGOING:
                self._sweeps.outgoing(now_ms)
            case Call.SWEEP_REPAIRS:
                self._sweeps.repairs(now_ms)
            case Call.SYNC:
                self._sweeps.sync(now_ms)
