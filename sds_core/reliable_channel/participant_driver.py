"""Calls a channel's SDS participant when a call is due, and handles its events."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from random import Random

from sds_core import message_channel as sds
from sds_core.message_channel import Cause
from sds_core.reliable_channel.assembly import Assembly
from sds_core.reliable_channel.encryption import EncryptionError
from sds_core.reliable_channel.events import (
    IrretrievableMessage,
    LimitReached,
    MessageReceived,
    Unusable,
    UnusableMessage,
)
from sds_core.reliable_channel.options import ReliableChannelOptions
from sds_core.reliable_channel.outputs import Output
from sds_core.reliable_channel.outward import Outward
from sds_core.reliable_channel.sending import Sending
from sds_core.reliable_channel.sync_timer import ChannelSyncTimer
from sds_core.reliable_channel.tape import TapedEncryption
from sds_core.wire import HistoryEntry


class ParticipantDriver:
    """Starts a participant's sweeps and sync messages when they are due.

    Attributes:
        sweep_ms: When the next sweep of the incoming buffer is due, Unix ms; inf before
            the first start.
        repair_ms: When the next sweep of the repairs is due, Unix ms; inf before the
            first start.
    """

    def __init__(
        self,
        participant: sds.MessageChannel,
        sending: Sending,
        outward: Outward,
        assembly: Assembly,
        contents: TapedEncryption,
        options: ReliableChannelOptions,
        random: Random,
    ) -> None:
        self.is_started = False
        self._participant = participant
        self._sending = sending
        self._outward = outward
        self._assembly = assembly
        self._contents = contents
        self._options = options
        self.sync_timer = ChannelSyncTimer(
            options.sync_min_interval_ms, options.profile.sync_requests_factor, random
        )
        self.sweep_ms: float = inf
        self.repair_ms: float = inf

    @property
    def next_ms(self) -> float:
        """When the next sweep or sync message is due, Unix ms."""
        if not self._outward.is_online:
            return self._sync_ms
        return min(self._sync_ms, self.sweep_ms, self.repair_ms)

    def start(self, now_ms: int) -> None:
        """Start all intervals."""
        self.is_started = True
        self.sweep_ms = now_ms + self._options.sweep_in_buf_interval_ms
        self.repair_ms = now_ms + self._options.profile.repair_sweep_ms
        self.sync_timer.restart(self._options.sync_multipliers.content_sent, now_ms)

    def back_online(self, now_ms: int) -> None:
        """Continue after a time in which the node was offline.

        The waits for missing messages are extended by this time. The repairs of one
        sweep are discarded, because they would be sent too late.
        """
        self._participant.resume(now_ms)
        self._participant.sweep_repairs(now_ms)

    def stop(self) -> None:
        """Stop until the next `start`, and cancel the planned sync message."""
        self.is_started = False
        self.sync_timer.stop()

    @property
    def _sync_ms(self) -> float:
        return self.sync_timer.due_ms(self._participant.next_request_ms)

    def sweep(self, now_ms: int, out: Output) -> None:
        """Sweep the incoming buffer and the repairs, each at its interval.

        While the node is offline, nothing can arrive or be sent, so no wait may end.
        """
        if not self._outward.is_online:
            return
        if self.sweep_ms <= now_ms:
            self.sweep_ms = now_ms + self._options.sweep_in_buf_interval_ms
            step = self._participant.sweep_incoming(now_ms)
            self.report(step.events, now_ms, out)
        if self.repair_ms <= now_ms:
            self.repair_ms = now_ms + self._options.profile.repair_sweep_ms
            step = self._participant.sweep_repairs(now_ms)
            self._sending.submit(step.broadcasts, now_ms, out)

    def sync(self, now_ms: int, out: Output) -> None:
        """Send a sync message if one is due and can be dispatched immediately.

        Sync messages do not wait in a queue, because a waiting sync message becomes
        outdated.
        """
        if self._sync_ms > now_ms:
            return
        multipliers = self._options.sync_multipliers
        # Other frames that are due now are sent before the sync message.
        self._sending.release(now_ms, out)
        if not self._outward.allows(Cause.SYNC, now_ms):
            self._restart_sync(multipliers.sync_failed, now_ms)
            # The waiting repair requests are sent with the next planned sync message.
            # Otherwise, these requests would wake the channel repeatedly.
            self.sync_timer.requests_ms = self.sync_timer.next_ms
            return
        step = self._participant.sync(now_ms)
        self._sending.submit(step.broadcasts, now_ms, out)
        self._restart_sync(multipliers.sync_sent, now_ms)

    def dispatched(self, cause: Cause, now_ms: int) -> None:
        """Record that the network accepted a frame."""
        if cause is Cause.CONTENT:
            self._restart_sync(self._options.sync_multipliers.content_sent, now_ms)

    def failed(self, cause: Cause, now_ms: int) -> None:
        """Record that the network did not accept a frame."""
        if cause is Cause.SYNC:
            self._restart_sync(self._options.sync_multipliers.sync_failed, now_ms)

    def _restart_sync(self, multiplier: float, now_ms: int) -> None:
        if self.is_started:
            self.sync_timer.restart(multiplier, now_ms)

    def _decrypted(self, content: bytes, out: Output) -> bytes | None:
        try:
            return self._contents.decrypt(content)
        except EncryptionError as error:
            out.events.append(UnusableMessage(Unusable.UNDECRYPTABLE, str(error)))
            return None

    def report(self, events: Iterable[sds.Event], now_ms: int, out: Output) -> None:
        """Handle events of the SDS participant; add the channel's events to `out`."""
        multipliers = self._options.sync_multipliers
        for event in events:
            match event:
                case sds.Received():
                    self.sync_timer.put_off(multipliers.content_received, now_ms)
                case sds.SyncReceived():
                    self.sync_timer.put_off(multipliers.sync_received, now_ms)
                case sds.Acknowledged(message_id):
                    self._sending.acknowledged(message_id, out)
                case sds.PossiblyAcknowledged(message_id):
                    self._sending.possibly_acknowledged(message_id, out)
                case sds.Delivered(_, sender_id, _, content):
                    # If the channel was restored from an older state, the participant
                    # can deliver our own messages. They are ignored.
                    if sender_id != self._participant.participant_id:
                        plain = self._decrypted(content, out)
                        if plain is not None:
                            out.events += self._assembly.add(plain, sender_id, now_ms)
                case sds.EphemeralReceived(_, sender_id, content):
                    plain = self._decrypted(content, out)
                    if plain is not None:
                        received = MessageReceived(plain, sender_id, is_ephemeral=True)
                        out.events.append(received)
                case sds.IrretrievablyLost(message_id, hint, sender_id):
                    entry = HistoryEntry(message_id, hint, sender_id)
                    out.events.append(IrretrievableMessage(entry))
                case sds.Evicted(sds.Buffer.MISSING, message_id):
                    out.events.append(LimitReached("missing", message_id))
                case _:
                    pass
