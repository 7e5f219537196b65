"""A participant of one SDS channel, without input, output, clock or chance of its own.

Bytes and times go in, frames to broadcast and events come out:

    send(), sync() ──▶ Step.broadcasts ──▶ the transport ──▶ receive() of the others
    receive(), advance() ──▶ Step.events ──▶ the application

`advance` does what is due, at or after `next_deadline_ms`. Nothing that a stranger may
send raises an error or takes more memory than the profile's limits allow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from heapq import heapify, heappop, heappush
from math import inf
from random import Random

from sds_core.message_channel import snapshot
from sds_core.message_channel.errors import (
    EmptyContent,
    FrameTooLarge,
    MessageIdTaken,
)
from sds_core.message_channel.events import (
    Broadcast,
    Buffer,
    Cause,
    Delivered,
    EphemeralReceived,
    Event,
    Evicted,
    Ignored,
    IgnoredReason,
    IrretrievablyLost,
    Missing,
    Received,
    RepairExpired,
    RepairRequested,
    Sent,
    Step,
    SyncReceived,
    SyncSent,
)
from sds_core.message_channel.incoming import (
    IncomingBuffer,
    MissingDependency,
    Waiting,
)
from sds_core.message_channel.lamport import LamportTimestamp
from sds_core.message_channel.local_log import LocalLog
from sds_core.message_channel.outgoing import OutgoingBuffer
from sds_core.message_channel.profile import AfterRequest, Profile
from sds_core.message_channel.repairer import Repairer
from sds_core.message_channel.rolling_bloom import RollingBloom
from sds_core.message_channel.sync import (
    AFTER_CONTENT_RECEIVED,
    AFTER_CONTENT_SENT,
    AFTER_SYNC_RECEIVED,
    SyncTimer,
)
from sds_core.wire import (
    Frame,
    FrameKind,
    HistoryEntry,
    HistoryEntryLike,
    UndecodableFrame,
    decode,
    encode,
)

_SPEC_PROFILE = Profile.spec()
_CONTENT = FrameKind.CONTENT
_EPHEMERAL = FrameKind.EPHEMERAL

_ENTRY_OVERHEAD_BYTES = 16
"""At least what the tags and lengths of a history entry and its fields take."""


class MessageChannel:
    """One participant in one channel (SDS, "Protocol Steps"; SDS-R guide).

    Times are Unix ms and may not go back.

    Args:
        channel_id: names the channel.
        participant_id: names this participant, globally unique; not empty.
        now_ms: the time at the start.
        random: draws the times of sync messages and their ids.
        profile: which behaviour where the documents leave a choice.

    Attributes:
        channel_id: as given.
        participant_id: as given.
        profile: as given.
        next_deadline_ms: when `advance` has something to do, Unix ms; kept up to date
            by every call.
    """

    def __init__(
        self,
        channel_id: str,
        participant_id: str,
        *,
        now_ms: int,
        random: Random,
        profile: Profile = _SPEC_PROFILE,
    ) -> None:
        _check_time(now_ms)
        _check_name("channel_id", channel_id, profile.id_limit)
        _check_name("participant_id", participant_id, profile.id_limit)
        self.channel_id = channel_id
        self.participant_id = participant_id
        self.profile = profile
        self._random = random
        self._started_ms = now_ms
        self._lamport = LamportTimestamp(profile, now_ms)
        self._log = LocalLog(profile.log_order, profile.log_limit)
        self._bloom = RollingBloom(profile)
        self._outgoing = OutgoingBuffer(profile)
        self._incoming = IncomingBuffer(profile)
        self._repairer = Repairer(participant_id, profile, now_ms)
        self._sync = SyncTimer(profile, random, now_ms)
        self.next_deadline_ms = self._sync.next_ms

    # -- what the application does

    def send(
        self, content: bytes, now_ms: int, *, message_id: str | None = None
    ) -> Step:
        """Put a message into a frame (SDS, "Send Message").

        Args:
            content: for the others' applications; not empty.
            now_ms: Unix ms.
            message_id: a globally unique id; made of sender, time and content if left
                out.

        Raises:
            EmptyContent: there is no content.
            MessageIdTaken: the id names another message.
            ValueError: the id is empty, too long, or no Unicode text.
            FrameTooLarge: the frame would be longer than the profile allows.
        """
        _check_time(now_ms)
        if not content:
            raise EmptyContent
        lamport = self._lamport.next(now_ms)
        if message_id is None:
            message_id = self._unique_id(lamport, content)
        elif self._log.knows(message_id) or self._incoming.knows(message_id):
            raise MessageIdTaken(message_id)
        else:
            _check_name("message_id", message_id, self.profile.id_limit)
        value, requested = self._frame(message_id, lamport, content, now_ms)
        events: list[Event] = [Sent(message_id)]
        events += _requested(requested, message_id)
        events += self._outgoing.add(message_id, value, now_ms)
        self._log.add(lamport, HistoryEntry(message_id, b"", self.participant_id))
        self._bloom.add(message_id)
        self._repairer.retain(message_id, value, self.participant_id, now_ms)
        self._put_off_sync(AFTER_CONTENT_SENT, now_ms)
        self._plan()
        return Step([Broadcast(Cause.CONTENT, message_id, value)], events)

    def send_ephemeral(self, content: bytes, now_ms: int) -> Step:
        """Put a message into a frame that asks for no reliability.

        It has no timestamp, history or filter, and nothing of it is kept (SDS,
        "Ephemeral Messages").

        Raises:
            EmptyContent: there is no content.
            FrameTooLarge: the frame would be longer than the profile allows.
        """
        if not content:
            raise EmptyContent
        # No timestamp would tell two of the same content apart.
        message_id = f"{self._random.getrandbits(256):064x}"
        frame = Frame.build(
            self.profile.dialect,
            message_id=message_id,
            channel_id=self.channel_id,
            sender_id=self.participant_id,
            content=content,
        )
        value = self._encoded(frame)
        return Step([Broadcast(Cause.EPHEMERAL, message_id, value)], [Sent(message_id)])

    def note_retrieval_hint(self, message_id: str, hint: bytes) -> None:
        """Say how a message of the log can be fetched elsewhere, for later histories.

        For our own, the transport knows only after broadcasting it.
        """
        entry = self._log.entries.get(message_id)
        if entry is not None and len(hint) <= self.profile.hint_limit:
            self._log.entries[message_id] = entry._replace(retrieval_hint=hint)

    # -- what the transport brings

    def receive(
        self, value: bytes, now_ms: int, *, retrieval_hint: bytes = b""
    ) -> Step:
        """Take in a frame from the channel (SDS, "Receive Message").

        Args:
            value: the frame's bytes, whatever they are.
            now_ms: Unix ms.
            retrieval_hint: how the frame can be fetched again; empty if unknown.
        """
        _check_time(now_ms)
        limit = self.profile.max_frame_bytes
        if len(value) > limit:
            detail = f"{len(value)} bytes, at most {limit}"
            return _ignored(IgnoredReason.TOO_LARGE, "", detail)
        try:
            frame = decode(value)
        except UndecodableFrame as error:
            return _ignored(IgnoredReason.MALFORMED, "", str(error))
        if len(retrieval_hint) > self.profile.hint_limit:
            retrieval_hint = b""
        return self.receive_frame(frame, value, now_ms, retrieval_hint=retrieval_hint)

    def receive_frame(
        self, frame: Frame, value: bytes, now_ms: int, *, retrieval_hint: bytes = b""
    ) -> Step:
        """Take in a frame that is decoded already; otherwise as `receive`."""
        message_id = frame.message_id
        if frame.channel_id != self.channel_id:
            return _ignored(
                IgnoredReason.FOREIGN_CHANNEL, message_id, frame.channel_id[:80]
            )
        if frame.dialect is not self.profile.dialect:
            return _ignored(IgnoredReason.FOREIGN_DIALECT, message_id, frame.dialect)
        # Whoever broadcasts a message answers for it, whatever else is wrong with it.
        if frame.kind is _CONTENT and self._repairer.responses.remove(message_id):
            self._plan()
        is_missing = message_id in self._incoming.missing
        # What we have said and forgotten, since we were restored, others give back.
        if frame.sender_id == self.participant_id and not is_missing:
            return _ignored(IgnoredReason.OWN_ECHO, message_id)
        if frame.kind is _EPHEMERAL:
            received = EphemeralReceived(message_id, frame.sender_id, frame.content)
            return Step((), (received,))
        log = self._log.entries
        is_content = frame.kind is _CONTENT
        if is_content and (
            message_id in log
            or message_id in self._log.forgotten
            or message_id in self._incoming.waiting
        ):
            return _ignored(IgnoredReason.DUPLICATE, message_id)
        unknown = [
            entry
            for entry in frame.causal_history
            # No message has an empty id.
            if entry.message_id not in log
            and entry.message_id not in self._log.forgotten
            and entry.message_id not in (message_id, "")
        ]
        refusal = self._refusal(frame, unknown, now_ms)
        if refusal is not None:
            return refusal
        return Step((), self._apply(frame, value, retrieval_hint, now_ms, unknown))

    # -- what time brings

    def advance(self, now_ms: int) -> Step:
        """Do everything that is due, and nothing else."""
        _check_time(now_ms)
        broadcasts: list[Broadcast] = []
        events: list[Event] = []
        for due_ms, sweep in (
            (
                min(self._incoming.next_ms, self._repairer.requests.next_ms),
                self.sweep_incoming,
            ),
            (self._outgoing.next_ms, self.sweep_outgoing),
            (self._repairer.next_answer_ms(), self.sweep_repairs),
            (self._sync.next_ms, self.sync),
        ):
            if due_ms <= now_ms:
                step = sweep(now_ms)
                broadcasts += step.broadcasts
                events += step.events
        self._plan()
        return Step(broadcasts, events)

    def sweep_incoming(self, now_ms: int) -> Step:
        """Give up what is missing for too long, and ask anew for what is not.

        Messages are delivered as soon as their dependencies are met, so that a sweep
        finds only those whose wait ends (SDS, "Periodic Incoming Buffer Sweep").
        """
        events: list[Event] = []
        for message_id in self._incoming.overdue(now_ms):
            events += self._lose(message_id, now_ms)
        events += self._break(self._incoming.stuck(now_ms), now_ms)
        for entry in self._repairer.requests.expired(now_ms):
            events.append(RepairExpired(entry.message_id))
            if (
                self.profile.after_request is AfterRequest.ASK_AGAIN
                and entry.message_id in self._incoming.missing
            ):
                events += self._repairer.ask_for(entry, now_ms)
        self._plan()
        return Step((), events)

    def sweep_outgoing(self, now_ms: int) -> Step:
        """Broadcast again what is not acknowledged in time.

        SDS, "Periodic Outgoing Buffer Sweep".
        """
        broadcasts, events = self._outgoing.sweep(now_ms)
        self._plan()
        return Step(broadcasts, events)

    def sweep_repairs(self, now_ms: int) -> Step:
        """Broadcast what others asked for and nobody has sent since.

        SDS-R guide, "Incoming Repair Request Buffer Sweep".
        """
        step = self._repairer.answer(now_ms)
        self._plan()
        return step

    def sync(self, now_ms: int) -> Step:
        """Put what we know into a frame without content, if we know anything.

        It is in no buffer, log or filter (SDS, "Periodic Sync Message").
        """
        self._sync.sent(now_ms, requests_wait=self._repairer.requests.has_waiting)
        step = Step((), ())
        if (
            self._log.entries
            or self._incoming.waiting
            or self._repairer.requests.due(now_ms)
        ):
            lamport = self._lamport.next(now_ms)
            message_id = f"sync-{self._random.getrandbits(64):016x}"
            value, requested = self._frame(message_id, lamport, b"", now_ms)
            step = Step(
                [Broadcast(Cause.SYNC, message_id, value)],
                [SyncSent(message_id), *_requested(requested, message_id)],
            )
        self._plan()
        return step

    # -- what can be looked at

    @property
    def lamport(self) -> int:
        """The current Lamport timestamp, in the profile's unit."""
        return self._lamport.value

    @property
    def log(self) -> tuple[str, ...]:
        """Ids of the local log, in its order."""
        return self._log.ids()

    @property
    def unacknowledged(self) -> tuple[str, ...]:
        """Ids of ours that nobody has shown to have received, oldest first."""
        return self._outgoing.ids(are_possibly_acknowledged=False)

    @property
    def possibly_acknowledged(self) -> tuple[str, ...]:
        """Ids of ours that some filter holds, oldest first."""
        return self._outgoing.ids(are_possibly_acknowledged=True)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Ids of the incoming buffer, in order of arrival."""
        return tuple(self._incoming.waiting)

    @property
    def missing(self) -> tuple[HistoryEntry, ...]:
        """What was named and never received, in order of noticing."""
        return tuple(one.entry for one in self._incoming.missing.values())

    # -- what is kept over a restart

    def snapshot(self) -> bytes:
        """Return the whole state, to be given to `restore`.

        Times stay absolute, so that what falls due meanwhile is due at once.
        """
        return snapshot.pack(
            snapshot.State(
                channel_id=self.channel_id,
                participant_id=self.participant_id,
                started_ms=self._started_ms,
                lamport=self._lamport.value,
                log_keys=self._log.keys(),
                log_entries=list(self._log.entries.values()),
                log_order=self.profile.log_order,
                forgotten=list(self._log.forgotten),
                bloom=self._bloom.state(),
                outgoing=snapshot.outgoing_state(self._outgoing),
                waiting=snapshot.waiting_state(self._incoming),
                missing=list(self._incoming.missing.values()),
                lost=list(self._incoming.lost),
                look_ms=snapshot.time_or_none(self._incoming.look_ms),
                requests=self._repairer.requests.state(),
                responses=self._repairer.responses.state(),
                retained=self._repairer.retained.state(),
                next_sync_ms=self._sync.next_ms,
                participants=self._repairer.participants.state(),
            )
        )

    @classmethod
    def restore(
        cls, blob: bytes, *, random: Random, profile: Profile = _SPEC_PROFILE
    ) -> MessageChannel:
        """Make the participant that `snapshot` was taken of.

        Args:
            blob: what `snapshot` returned, in this version or an earlier one.
            random: draws on.
            profile: as before.

        Raises:
            SnapshotError: the blob cannot be read, or does not fit the profile.
        """
        state = snapshot.unpack(blob)
        snapshot.check_fit(state, profile)
        self = cls(
            state.channel_id,
            state.participant_id,
            now_ms=state.started_ms,
            # Not drawn from: the state has the time of the next sync message.
            random=Random(0),  # noqa: S311 - no secret is made of it
            profile=profile,
        )
        self._random = random
        self._sync = SyncTimer.planned(profile, random, state.next_sync_ms)
        self._lamport.value = state.lamport
        self._log.restore(state.log_keys, state.log_entries, state.forgotten)
        snapshot.restore_bloom(self._bloom, state)
        snapshot.restore_outgoing(self._outgoing, state)
        self._incoming.restore(
            snapshot.waiting_messages(state),
            state.missing,
            state.lost,
            inf if state.look_ms is None else state.look_ms,
        )
        self._repairer.requests.restore(state.requests)
        self._repairer.responses.restore(state.responses)
        self._repairer.retained.restore(state.retained)
        self._repairer.participants.restore(state.participants)
        self._plan()
        return self

    # -- receiving, step by step

    def _refusal(
        self, frame: Frame, unknown: list[HistoryEntryLike], now_ms: int
    ) -> Step | None:
        """Return why a frame has no effect at all, before it has any."""
        profile = self.profile
        message_id = frame.message_id
        entries = len(frame.causal_history)
        if entries > profile.history_limit:
            detail = f"{entries} entries, at most {profile.history_limit}"
            return _ignored(IgnoredReason.HISTORY_TOO_LONG, message_id, detail)
        limit = profile.id_limit
        longest = max(len(message_id), len(frame.sender_id))
        for entry in (*unknown, *frame.repair_request):
            longest = max(longest, len(entry.message_id), len(entry.sender_id))
        if longest > limit:
            detail = f"{longest} characters, at most {limit}"
            return _ignored(IgnoredReason.ID_TOO_LONG, message_id[:limit], detail)
        # The rest is about a place in the log, which sync messages have none in.
        if frame.kind is not _CONTENT:
            return None
        lamport = frame.lamport or 0
        if lamport > self._lamport.limit(now_ms):
            detail = f"lamport timestamp {lamport}"
            return _ignored(IgnoredReason.FAR_FUTURE, message_id, detail)
        is_missing = message_id in self._incoming.missing
        if self._log.has_outgrown(lamport, message_id) and not is_missing:
            return _ignored(IgnoredReason.OLDER_THAN_LOG, message_id)
        return None

    def _apply(
        self,
        frame: Frame,
        value: bytes,
        retrieval_hint: bytes,
        now_ms: int,
        unknown: list[HistoryEntryLike],
    ) -> list[Event]:
        """Let an accepted content or sync frame take effect."""
        message_id = frame.message_id
        sender_id = frame.sender_id
        is_own = sender_id == self.participant_id
        if not is_own:
            self._repairer.participants.hear(sender_id, now_ms)
        self._lamport.tick(frame.lamport or 0, now_ms)
        events: list[Event] = []
        is_content = frame.kind is _CONTENT
        if is_content:
            events.append(Received(message_id, sender_id))
            self._incoming.arrived(message_id)
            self._repairer.requests.remove(message_id)
            self._bloom.add(message_id)
            self._put_off_sync(AFTER_CONTENT_RECEIVED, now_ms)
        else:
            events.append(SyncReceived(message_id, sender_id))
            self._put_off_sync(AFTER_SYNC_RECEIVED, now_ms)
        if self._outgoing.messages and not is_own:
            events += self._outgoing.review(frame)
        if frame.repair_request and self.profile.repair and not is_own:
            events += self._repairer.take_requests(frame, now_ms)
        unmet: set[str] = set()
        if unknown:
            unmet, news = self._unmet(unknown, message_id, now_ms)
            events += news
        if is_content:
            if unmet:
                message = Waiting(frame, value, retrieval_hint, now_ms, unmet)
                events += self._wait(message_id, message, now_ms)
            elif self._incoming.waiting:
                ready = (message_id, frame, value, retrieval_hint)
                events += self._deliver_all([ready], now_ms)
            else:
                events.append(self._deliver(frame, value, retrieval_hint, now_ms))
        self._plan()
        return events

    def _unmet(
        self, unknown: list[HistoryEntryLike], named_by: str, now_ms: int
    ) -> tuple[set[str], list[Event]]:
        """Return what a message must wait for, and note what is missing of it."""
        incoming = self._incoming
        buffered_is_met = self.profile.buffered_meets_dependencies
        unmet: set[str] = set()
        events: list[Event] = []
        for entry in unknown:
            dependency = entry.message_id
            if dependency in incoming.lost or dependency in unmet:
                continue
            if dependency in incoming.waiting:
                if not buffered_is_met:
                    unmet.add(dependency)
                continue
            unmet.add(dependency)
            plain = self._plain(entry)
            if dependency not in incoming.missing:
                incoming.missing[dependency] = MissingDependency(plain, now_ms)
                events.append(Missing(*plain, named_by))
            events += self._repairer.named(
                plain, incoming.missing[dependency].since_ms, now_ms
            )
        while len(incoming.missing) > self.profile.missing_limit:
            oldest = next(iter(incoming.missing))
            events.append(Evicted(Buffer.MISSING, oldest))
            events += self._lose(oldest, now_ms)
        # What was lost may have let others be delivered.
        unmet = {
            one
            for one in unmet
            if one not in incoming.lost and not self._log.knows(one)
        }
        return unmet, events

    def _wait(self, message_id: str, message: Waiting, now_ms: int) -> list[Event]:
        """Put a message into the incoming buffer."""
        self._incoming.hold(message_id, message)
        events: list[Event] = []
        if self.profile.buffered_meets_dependencies:
            events += self._meet([message_id], now_ms)
        if len(self._incoming.waiting) > self.profile.incoming_limit:
            oldest = next(iter(self._incoming.waiting))
            events.append(Evicted(Buffer.INCOMING, oldest))
            events += self._release(oldest, now_ms)
        return events

    def _lose(self, message_id: str, now_ms: int) -> list[Event]:
        """Wait for a missing message no longer."""
        if message_id not in self._incoming.missing:
            return []
        entry = self._incoming.give_up(message_id)
        self._repairer.requests.remove(message_id)
        return [IrretrievablyLost(*entry), *self._meet([message_id], now_ms)]

    def _release(self, message_id: str, now_ms: int) -> list[Event]:
        """Deliver a waiting message, after what it waits for as far as that is here."""
        incoming = self._incoming
        events: list[Event] = []
        needed = incoming.needed_by(message_id)
        for dependency in needed:
            events += self._lose(dependency, now_ms)
        return events + self._break(incoming.waiting_of(needed), now_ms)

    def _break(self, circle: Iterable[str], now_ms: int) -> list[Event]:
        """Deliver messages that wait for each other, one after the other.

        What is delivered may free others, of the circle or not, in its turn.
        """
        events: list[Event] = []
        for message_id in circle:
            message = self._incoming.waiting.pop(message_id, None)
            if message is not None:
                events += self._deliver_all([_delivery(message_id, message)], now_ms)
        return events

    def _meet(self, dependencies: Iterable[str], now_ms: int) -> list[Event]:
        """Deliver what waited for these alone."""
        freed = [
            _delivery(message_id, message)
            for dependency in dependencies
            for message_id, message in self._incoming.met(dependency)
        ]
        return self._deliver_all(freed, now_ms) if freed else []

    def _deliver_all(
        self, ready: list[tuple[str, Frame, bytes, bytes]], now_ms: int
    ) -> list[Event]:
        """Deliver messages and all that waits for them, in the log's order.

        SDS, "Deliver Message". A loop, so that no chain is too long.
        """
        events: list[Event] = []
        order = [
            (frame.lamport or 0, message_id, frame, value, hint)
            for message_id, frame, value, hint in ready
        ]
        heapify(order)
        while order:
            _, message_id, frame, value, hint = heappop(order)
            events.append(self._deliver(frame, value, hint, now_ms))
            for freed_id, freed in self._incoming.met(message_id):
                one = _delivery(freed_id, freed)
                heappush(order, (freed.frame.lamport or 0, *one))
        return events

    def _deliver(self, frame: Frame, value: bytes, hint: bytes, now_ms: int) -> Event:
        """Put one message into the log."""
        message_id = frame.message_id
        sender_id = frame.sender_id
        lamport = frame.lamport or 0
        self._log.add(lamport, HistoryEntry(message_id, hint, sender_id))
        self._repairer.retain(message_id, value, sender_id, now_ms)
        self._lamport.value = max(self._lamport.value, lamport)
        return Delivered(message_id, sender_id, lamport, frame.content)

    # -- frames

    def _frame(
        self, message_id: str, lamport: int, content: bytes, now_ms: int
    ) -> tuple[bytes, list[HistoryEntry]]:
        """Return a frame's bytes, and what it asks for.

        Raises:
            FrameTooLarge: the frame would be longer than the profile allows; then
                nothing has changed.
        """
        requested = self._repairer.requests.due(now_ms)
        frame = Frame.build(
            self.profile.dialect,
            message_id=message_id,
            channel_id=self.channel_id,
            sender_id=self.participant_id,
            lamport=lamport,
            causal_history=self._causal_history(),
            bloom_filter=self._bloom.to_wire(),
            repair_request=requested,
            content=content,
        )
        value = self._encoded(frame)
        self._lamport.value = lamport
        self._repairer.requests.carried(requested)
        return value, requested

    def _causal_history(self) -> list[HistoryEntry]:
        """Return the last entries of the log, as many as leave room in a frame.

        Ids and hints of strangers may be long; they must not silence us.
        """
        entries = self._log.last(self.profile.causal_history_size)
        room = self.profile.max_frame_bytes // 4
        for fitting, entry in enumerate(reversed(entries)):
            room -= _ENTRY_OVERHEAD_BYTES + len(entry.retrieval_hint)
            room -= len(entry.message_id.encode()) + len(entry.sender_id.encode())
            if room < 0:
                return entries[len(entries) - fitting :]
        return entries

    def _encoded(self, frame: Frame) -> bytes:
        value = encode(frame)
        limit = self.profile.max_frame_bytes
        if len(value) > limit:
            raise FrameTooLarge(len(value), limit)
        return value

    def _unique_id(self, lamport: int, content: bytes) -> str:
        """Return an id that no other message has, not even one of the same content."""
        hashed = sha256()
        for part in (
            self.channel_id.encode(),
            self.participant_id.encode(),
            lamport.to_bytes(8, "big"),
            content,
        ):
            hashed.update(len(part).to_bytes(8, "big"))
            hashed.update(part)
        return hashed.hexdigest()

    def _plain(self, entry: HistoryEntryLike) -> HistoryEntry:
        """Copy an entry out of the frame, without a hint that is too long."""
        hint = entry.retrieval_hint
        if len(hint) > self.profile.hint_limit:
            hint = b""
        return HistoryEntry(entry.message_id, hint, entry.sender_id)

    # -- time

    def _put_off_sync(self, factor: float, now_ms: int) -> None:
        self._sync.put_off(
            factor, now_ms, requests_wait=self._repairer.requests.has_waiting
        )

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


def _check_name(what: str, name: str, limit: int) -> None:
    if not 0 < len(name) <= limit:
        message = f"{what} has {len(name)} characters, must be 1 to {limit}"
        raise ValueError(message)
    try:
        name.encode()
    except UnicodeEncodeError as error:
        message = f"{what} {name!r:.80} is not valid Unicode text: {error.reason}"
        raise ValueError(message) from error


def _check_time(now_ms: int) -> None:
    # A fraction would be found when a snapshot is restored, and all of it be lost.
    if not isinstance(now_ms, int):
        message = f"now_ms is {now_ms!r}, must be whole milliseconds: int(…)"
        raise TypeError(message)


def _ignored(reason: IgnoredReason, message_id: str, detail: str = "") -> Step:
    return Step((), (Ignored(reason, message_id, detail),))


def _requested(entries: list[HistoryEntry], carrier_id: str) -> Iterator[Event]:
    if entries:
        yield RepairRequested(tuple(entry.message_id for entry in entries), carrier_id)


def _delivery(message_id: str, message: Waiting) -> tuple[str, Frame, bytes, bytes]:
    return message_id, message.frame, message.value, message.retrieval_hint
