"""Repeats recorded changes after a snapshot, and records them in `changes`."""

from __future__ import annotations

from sds_core.message_channel.changes import Call, Change
from sds_core.message_channel.delivery import Delivery
from sds_core.message_channel.errors import SnapshotError
from sds_core.message_channel.framing import Sending
from sds_core.message_channel.parts import Parts
from sds_core.message_channel.reception import Reception
from sds_core.message_channel.sweeps import Sweeps
from sds_core.wire import WireError, decode


def repeat(
    change: Change,
    parts: Parts,
    sending: Sending,
    reception: Reception,
    delivery: Delivery,
    sweeps: Sweeps,
) -> None:
    """Change a participant's state as a recorded call did.

    Raises:
        SnapshotError: The previous change is missing, or the frame of this change is
            invalid.
    """
    if not parts.changes.is_next(change):
        return
    now_ms = change.now_ms
    try:
        match change.call:
            case Call.RESUMED:
                sweeps.resume(now_ms)
            case Call.SENT:
                sending.repeat(change.value, now_ms)
            case Call.RECEIVED:
                frame = decode(change.value)
                reception.receive(frame, change.value, change.hint, now_ms)
            case Call.COPY:
                reception.take_copy(change.message_id, change.hint)
            case Call.HINT:
                reception.note_hint(change.message_id, change.hint)
            case Call.MET:
                delivery.met_elsewhere(change.message_id, now_ms)
            case Call.SWEEP_INCOMING:
                sweeps.incoming(now_ms)
            case Call.SWEEP_OUTGOING:
                sweeps.outgoing(now_ms)
            case Call.SWEEP_REPAIRS:
                sweeps.repairs(now_ms)
            case Call.SYNC:
                sweeps.sync(now_ms)
    except WireError as error:
        raise SnapshotError(str(error)) from error
    # Storing a hint does not depend on the time.
    if change.call is not Call.HINT:
        parts.uptime.last_ms = now_ms
    parts.sync.next_ms = change.next_sync_ms
