"""Actions of a participant at its deadlines, and after a restart."""

from __future__ import annotations

from random import Random

from sds_core.message_channel.delivery import Delivery
from sds_core.message_channel.events import (
    Broadcast,
    Cause,
    Event,
    RepairExpired,
    Step,
    SyncSent,
)
from sds_core.message_channel.framing import FrameBuilder, requested_events
from sds_core.message_channel.parts import Behaviour, Parts
from sds_core.message_channel.profile import AfterRequest


class Sweeps(Behaviour):
    """Changes a participant's state at deadlines and after a restart."""

    def __init__(
        self, parts: Parts, delivery: Delivery, frames: FrameBuilder, random: Random
    ) -> None:
        super().__init__(parts)
        self._delivery = delivery
        self._frames = frames
        self._random = random

    @property
    def incoming_ms(self) -> float:
        """When `incoming` must be called next, Unix ms; inf if never."""
        return min(self._incoming.next_ms, self._repairer.requests.next_ms)

    def incoming(self, now_ms: int) -> Step:
        """See `MessageChannel.sweep_incoming`."""
        events: list[Event] = []
        for message_id in self._incoming.overdue(now_ms):
            events += self._delivery.lose(message_id, now_ms)
        events += self._delivery.deliver_circle(self._incoming.stuck(now_ms), now_ms)
        for entry in self._repairer.requests.expired(now_ms):
            events.append(RepairExpired(entry.message_id))
            if (
                self._profile.after_request is AfterRequest.ASK_AGAIN
                and entry.message_id in self._incoming.missing
            ):
                events += self._repairer.ask_for(entry, now_ms)
        return Step((), events)

    def sync(self, now_ms: int) -> Step:
        """Build a sync frame (SDS, "Periodic Sync Message")."""
        requests_wait = self._repairer.requests.has_waiting
        self._sync.sync_sent(now_ms, requests_wait=requests_wait)
        if not (
            self._log.entries
            or self._incoming.waiting
            or self._repairer.requests.due(now_ms)
        ):
            return Step((), ())
        lamport = self._lamport.next(now_ms)
        message_id = f"sync-{self._random.getrandbits(64):016x}"
        value, requested = self._frames.build(message_id, lamport, b"", now_ms)
        return Step(
            [Broadcast(Cause.SYNC, message_id, value)],
            [SyncSent(message_id), *requested_events(requested, message_id)],
        )

    def request_missing(self, now_ms: int) -> None:
        """Queue repair requests for all missing messages, because repair is now on."""
        for missing in self._incoming.missing.values():
            for _ in self._repairer.ask_for(missing.entry, now_ms):
                pass

    def resume(self, off_ms: int, now_ms: int) -> None:
        """Extend waits by the time for which the process was off."""
        self._incoming.put_off(off_ms)
        self._repairer.requests.resume(now_ms)
