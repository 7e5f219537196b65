"""A participant of one SDS channel: a pure state machine without I/O or clock.

The caller passes bytes and times; the calls return frames to broadcast, and events:

    send(), sync() ──▶ Step.broadcasts ──▶ the transport ──▶ receive() of the others
    receive(), advance() ──▶ Step.events ──▶ the application

At or after `next_deadline_ms`, call `advance`, which does everything that is due.
Whatever frame the network delivers, `receive` raises no error, and memory stays within
the profile's limits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

from sds_core.message_channel import changes as change_records
from sds_core.message_channel import snapshot
from sds_core.message_channel.changes import Call, Change
from sds_core.message_channel.checks import check_name, check_time, size_refusal
from sds_core.message_channel.delivery import Delivery
from sds_core.message_channel.errors import SnapshotError
from sds_core.message_channel.events import (
    Broadcast,
    EphemeralReceived,
    Event,
    Ignored,
    IgnoredReason,
    Step,
)
from sds_core.message_channel.framing import FrameBuilder, Sending
from sds_core.message_channel.parts import Parts, Uptime
from sds_core.message_channel.profile import Profile
from sds_core.message_channel.reception import Reception, ignored
from sds_core.message_channel.sweeps import Sweeps
from sds_core.message_channel.sync import SyncTimer
from sds_core.message_channel.view import ParticipantView
from sds_core.wire import Frame, UndecodableFrame, WireError, decode

_DEFAULT_PROFILE = Profile()


class MessageChannel(ParticipantView):
    """One participant in one channel (SDS, "Protocol Steps"; SDS-R guide).

    Times are Unix ms and must not decrease from call to call. Only the first call after
    `restore` may have an earlier time, because the clock was ahead before; all stored
    times then move back by the difference.

    Args:
        participant_id: Globally unique; not empty.
        random: Random numbers for the ids of messages and the times of sync messages.

    Attributes:
        next_deadline_ms: When `advance` must be called next, Unix ms. Every call that
            changes the state updates this time.
        hint_provider: Function that returns the retrieval hint of a message, or empty
            bytes if the hint is unknown. None by default. Before the participant
            builds a frame with a causal history, it calls the function for every
            history entry without a hint. The function must not raise an error.
    """

    hint_provider: Callable[[str], bytes] | None = None

    def __init__(
        self,
        channel_id: str,
        participant_id: str,
        *,
        now_ms: int,
        random: Random,
        profile: Profile = _DEFAULT_PROFILE,
    ) -> None:
        check_time(now_ms)
        check_name("channel_id", channel_id, profile.id_limit)
        check_name("participant_id", participant_id, profile.id_limit)
        sync, uptime = SyncTimer.started(profile, random, now_ms), Uptime(now_ms)
        parts = Parts.empty(channel_id, participant_id, profile, now_ms, sync, uptime)
        self._set_up(parts, random)

    def _set_up(self, parts: Parts, random: Random) -> None:
        super().__init__(parts)
        self._random = random
        self.channel_id = parts.channel_id
        self.participant_id = parts.participant_id
        self.profile = parts.profile
        frames, delivery = FrameBuilder(parts), Delivery(parts)
        self._sending = Sending(parts, frames, random)
        self._reception = Reception(parts, delivery)
        self._delivery = delivery
        self._sweeps = Sweeps(parts, delivery, frames, random)
        self._plan()

    # -- calls by the application

    def send(
        self, content: bytes, now_ms: int, *, message_id: str | None = None
    ) -> Step:
        """Return the frame of a new message (SDS, "Send Message").

        Args:
            content: Bytes that the applications of the other participants receive; not
                empty.
            now_ms: Unix ms.
            message_id: A globally unique id; by default a hash of channel, sender,
                Lamport timestamp, content, time and a random number.

        Raises:
            EmptyContent: The content is empty.
            MessageIdTaken: A known message already has this id.
            ValueError: The id is empty, too long, or not valid Unicode text.
            FrameTooLarge: The frame would be longer than the profile allows.
        """
        self._at(now_ms)
        self._ask_for_hints()
        step = self._sending.send(content, now_ms, message_id)
        self._done(Call.SENT, now_ms, value=step.broadcasts[0].value)
        return step

    def send_ephemeral(self, content: bytes, now_ms: int) -> Step:
        """Return the frame of an ephemeral message (SDS, "Ephemeral Messages").

        The frame has no timestamp, history or filter. The participant does not remember
        the message.

        Raises:
            EmptyContent: The content is empty.
            FrameTooLarge: The frame would be longer than the profile allows.
        """
        return self._sending.send_ephemeral(content)

    def withdraw(self, message_id: str, now_ms: int) -> bool:
        """Take back a message of ours that never reached the network.

        For example, the network refused the message for good. Later causal histories
        do not name a withdrawn message, and repair requests for it are not answered.
        Its id stays known: copies of the message are ignored, and if a causal history
        names the id, the message does not become missing. The id also stays in the
        bloom filter, which cannot remove ids. There, the id is harmless, because only a
        message's sender looks for the message in the filters of others.

        Returns:
            Whether the message was withdrawn. If the outgoing buffer does not have the
            message, for example because it was acknowledged, the call has no effect.
        """
        self._at(now_ms)
        is_withdrawn = self._sending.withdraw(message_id)
        if is_withdrawn:
            self._done(Call.WITHDRAWN, now_ms, message_id=message_id)
        return is_withdrawn

    def note_retrieval_hint(self, message_id: str, hint: bytes) -> None:
        """Store the retrieval hint of a message for use in later causal histories.

        Call this for our own messages: the transport knows their hints only after the
        broadcast. If the message is neither in the log nor waiting for dependencies, or
        if the hint is too long, the call has no effect.
        """
        if self._reception.note_hint(message_id, hint):
            self._done(Call.HINT, 0, hint=hint, message_id=message_id)

    def mark_dependencies_met(self, message_ids: Iterable[str], now_ms: int) -> Step:
        """Mark messages as received, because the application has them already.

        For example, the application read the messages from its own storage. Marked
        messages are no longer missing or lost. The participant adds them to its filter,
        but not to its log or to causal histories. Frames that contain a marked message
        count as duplicates. Messages that waited only for marked messages are
        delivered.

        Raises:
            ValueError: An id is empty, too long, or not valid Unicode text; nothing
                changes.
        """
        message_ids = tuple(message_ids)
        for message_id in message_ids:
            check_name("message_id", message_id, self.profile.id_limit)
        self._at(now_ms)
        events: list[Event] = []
        for message_id in message_ids:
            delivered = self._delivery.met_elsewhere(message_id, now_ms)
            if delivered is not None:
                events += delivered
                self._done(Call.MET, now_ms, message_id=message_id)
        return Step((), events)

    def _ask_for_hints(self) -> None:
        if self.hint_provider is None:
            return
        for entry in self._log.last(self.profile.causal_history_size):
            if not entry.retrieval_hint:
                hint = self.hint_provider(entry.message_id)
                if hint:
                    self.note_retrieval_hint(entry.message_id, hint)

    # -- calls by the transport

    def receive(
        self, value: bytes, now_ms: int, *, retrieval_hint: bytes = b""
    ) -> Step:
        """Receive a frame from the network (SDS, "Receive Message").

        If the bytes are invalid, the result has an event `Ignored`. If the hint is
        unknown, pass empty bytes as `retrieval_hint`.
        """
        check_time(now_ms)
        # `receive_frame` has the same check, but a frame that is too long must not even
        # be decoded.
        refused = size_refusal(value, self.profile)
        if refused is not None:
            return Step((), (refused,))
        try:
            frame = decode(value)
        except UndecodableFrame as error:
            return ignored(IgnoredReason.MALFORMED, "", str(error))
        return self.receive_frame(frame, value, now_ms, retrieval_hint=retrieval_hint)

    def receive_frame(
        self, frame: Frame, value: bytes, now_ms: int, *, retrieval_hint: bytes = b""
    ) -> Step:
        """Receive a frame that is already decoded; see `receive`."""
        refused = size_refusal(value, self.profile)
        if refused is not None:
            return Step((), (refused,))
        if len(retrieval_hint) > self.profile.hint_limit:
            retrieval_hint = b""
        self._at(now_ms)
        was_asked_for = frame.message_id in self._repairer.responses
        step = self._reception.receive(frame, value, retrieval_hint, now_ms)
        event = step.events[0]
        if (
            isinstance(event, Ignored)
            and event.reason is not IgnoredReason.OLDER_THAN_LOG
        ):
            self._done_without_effect(event, retrieval_hint, now_ms, was_asked_for)
        elif not isinstance(event, EphemeralReceived):
            self._done(Call.RECEIVED, now_ms, value=value, hint=retrieval_hint)
        return step

    def _done_without_effect(
        self, event: Ignored, hint: bytes, now_ms: int, was_asked_for: bool
    ) -> None:
        """Record an ignored frame if it cancelled a repair answer, or had a hint."""
        message_id = event.message_id
        if event.reason not in (IgnoredReason.OWN_ECHO, IgnoredReason.DUPLICATE):
            hint = b""
        if hint or (was_asked_for and message_id not in self._repairer.responses):
            self._done(Call.COPY, now_ms, hint=hint, message_id=message_id)

    # -- calls at a deadline

    def advance(self, now_ms: int) -> Step:
        """Run every sweep that is due now, and send a sync message if it is due."""
        self._at(now_ms)
        broadcasts: list[Broadcast] = []
        events: list[Event] = []
        for due_ms, sweep in (
            (self._sweeps.incoming_ms, self.sweep_incoming),
            (self._outgoing.next_ms, self.sweep_outgoing),
            (self._repairer.next_answer_ms(), self.sweep_repairs),
            (self._sync.next_ms, self.sync),
        ):
            if due_ms <= now_ms:
                step = sweep(now_ms)
                broadcasts += step.broadcasts
                events += step.events
        return Step(broadcasts, events)

    def sweep_incoming(self, now_ms: int) -> Step:
        """Stop waiting for messages that have been missing for too long.

        Expired repair requests are reported. With `AfterRequest.ASK_AGAIN`, they are
        also repeated. Source: SDS, "Periodic Incoming Buffer Sweep".
        """
        self._at(now_ms)
        return self._swept(self._sweeps.incoming(now_ms), Call.SWEEP_INCOMING, now_ms)

    def sweep_outgoing(self, now_ms: int) -> Step:
        """Broadcast our messages again if they were not acknowledged in time.

        Source: SDS, "Periodic Outgoing Buffer Sweep".
        """
        self._at(now_ms)
        return self._swept(self._outgoing.sweep(now_ms), Call.SWEEP_OUTGOING, now_ms)

    def sweep_repairs(self, now_ms: int) -> Step:
        """Broadcast requested messages, unless another participant already sent them.

        Source: SDS-R guide, "Incoming Repair Request Buffer Sweep".
        """
        self._at(now_ms)
        return self._swept(self._repairer.answer(now_ms), Call.SWEEP_REPAIRS, now_ms)

    def sync(self, now_ms: int) -> Step:
        """Return a sync message: a frame with a history and filter, without content.

        The sync message enters no buffer, log or filter (SDS, "Periodic Sync Message").
        If the log is empty, no message waits for dependencies, and no repair request is
        due, the returned `Step` is empty.
        """
        self._at(now_ms)
        self._ask_for_hints()
        return self._swept(self._sweeps.sync(now_ms), Call.SYNC, now_ms)

    def _swept(self, step: Step, call: Call, now_ms: int) -> Step:
        self._done(call, now_ms)
        return step

    # -- storage for a restart

    def record_changes(self) -> None:
        """Start to record changes of the state, which `take_changes` then returns."""
        self._changes.is_on = True

    def take_changes(self) -> list[bytes]:
        """Return the changes since the last `take_changes`, in order, and forget them.

        Store the changes of a call before you broadcast its frames. After you store a
        snapshot, you can delete the changes that precede the snapshot.
        """
        return self._changes.take()

    def snapshot(self, now_ms: int | None = None) -> bytes:
        """Return the whole state as bytes, which `restore` accepts.

        The snapshot contains absolute times: if a deadline passes before `restore`, its
        action is due immediately after `restore`. The waits for missing messages
        pause while the process is off, because no repair is possible then. By default,
        `now_ms` is the time of the last call.
        """
        if now_ms is not None:
            self._at(now_ms)
        return snapshot.SEAL.pack(snapshot.state_of(self._parts))

    @classmethod
    def restore(
        cls,
        blob: bytes,
        *,
        changes: Iterable[bytes] = (),
        random: Random,
        profile: Profile = _DEFAULT_PROFILE,
        was_off: bool = True,
    ) -> MessageChannel:
        """Restore a participant from a snapshot and later changes.

        Args:
            blob: Result of `snapshot`, from this release or an earlier one.
            changes: Results of `take_changes`, in order. Changes that the snapshot
                contains are skipped.
            random: See `MessageChannel`.
            profile: The participant's profile; it must fit the snapshot, and the state
                after the changes (see `snapshot.check_fit`).
            was_off: Whether the first call extends the waits for missing messages,
                because the process was off, or moves stored times back, because the
                clock was ahead. If False, only `resume` does so.

        Raises:
            SnapshotError: The blob or a change is invalid, a change is missing, or the
                profile does not fit the stored state.
        """
        state = snapshot.SEAL.unpack(blob)
        snapshot.check_fit(state, profile)
        # The result of a call depends on the options, so the changes are repeated with
        # the options of the original calls.
        made_under = state.profile or profile
        self = cls.__new__(cls)
        try:
            self._set_up(snapshot.restored(state, made_under, random), random)
            for one in changes:
                self._repeat(change_records.SEAL.unpack(one))
            if made_under != profile:
                state = snapshot.state_of(self._parts)
                state = snapshot.adapted(state, made_under, profile)
                snapshot.check_fit(state, profile)
                self._set_up(snapshot.restored(state, profile, random), random)
                if not made_under.repair:
                    self._sweeps.request_missing(self.latest_ms)
        except WireError as error:
            raise SnapshotError(str(error)) from error
        self._plan()
        self._uptime.is_resuming = was_off
        return self

    def resume(self, now_ms: int) -> None:
        """Extend the waits for missing messages by the time since the last call.

        If `now_ms` is before the last call, all stored times move back instead. Use
        this method only after a time in which the participant could receive nothing,
        and after a `restore` only with `was_off=False`.
        """
        self._uptime.is_resuming = True
        self._at(now_ms)

    def _repeat(self, change: Change) -> None:
        """Repeat a recorded call, unless the state already contains its change.

        Raises:
            SnapshotError: A change that precedes this change is missing.
            WireError: The frame of this change is invalid.
        """
        if not self._changes.is_next(change):
            return
        now_ms = change.now_ms
        match change.call:
            case Call.RESUMED:
                self._resume(now_ms)
            case Call.SENT:
                self._sending.repeat(change.value, now_ms)
            case Call.WITHDRAWN:
                self._sending.withdraw(change.message_id)
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
                self._outgoing.sweep(now_ms)
            case Call.SWEEP_REPAIRS:
                self._repairer.answer(now_ms)
            case Call.SYNC:
                self._sweeps.sync(now_ms)
        # The change of a hint has no time: its `now_ms` is 0.
        if change.call is not Call.HINT:
            self._uptime.last_ms = now_ms
        self._sync.next_ms = change.next_sync_ms

    # -- time

    @property
    def latest_ms(self) -> int:
        """Time of the latest call or snapshot, Unix ms.

        It is 0 if the participant was restored from a snapshot that lacks this time.
        """
        return self._uptime.last_ms or 0

    def _done(
        self,
        call: Call,
        now_ms: int,
        *,
        value: bytes = b"",
        hint: bytes = b"",
        message_id: str = "",
    ) -> None:
        """Record a call that changed the state, and plan the next deadline."""
        if self._changes.is_on:
            number, sync_ms = self._changes.number + 1, self._sync.next_ms
            self._changes.add(
                Change(number, call, now_ms, sync_ms, value, hint, message_id)
            )
        self._plan()

    def _at(self, now_ms: int) -> None:
        """Begin a call. After a restart, the first call adapts stored times.

        Raises:
            TypeError: The time is not an int.
        """
        check_time(now_ms)
        if self._uptime.is_resuming:
            self._uptime.is_resuming = False
            if self._resume(now_ms):
                self._done(Call.RESUMED, now_ms)
        self._uptime.last_ms = now_ms

    def _resume(self, now_ms: int) -> bool:
        """Adapt stored times to the time since the last call before the restart.

        Returns:
            Whether any time passed, or the clock was set back.
        """
        off_ms = self._uptime.off_ms(now_ms)
        if off_ms > 0:
            self._sweeps.resume(off_ms, now_ms)
        elif off_ms < 0:
            state = snapshot.moved(snapshot.state_of(self._parts), off_ms)
            parts = snapshot.restored(state, self.profile, self._random)
            self._set_up(replace(parts, changes=self._changes), self._random)
        return off_ms != 0

    def _plan(self) -> None:
        self.next_deadline_ms = int(
            min(
                self._sync.next_ms,
                self._outgoing.next_ms,
                self._incoming.next_ms,
                self._repairer.requests.next_ms,
                self._repairer.next_answer_ms(),
            )
        )
