"""Applies received frames to the state of a participant (SDS, "Receive Message")."""

from __future__ import annotations

from sds_core.message_channel.checks import refusal
from sds_core.message_channel.delivery import Delivery
from sds_core.message_channel.events import (
    EphemeralReceived,
    Event,
    Ignored,
    IgnoredReason,
    Received,
    Step,
    SyncReceived,
)
from sds_core.message_channel.incoming import Waiting
from sds_core.message_channel.parts import Behaviour, Parts
from sds_core.wire import Frame, FrameKind, HistoryEntryLike


class Reception(Behaviour):
    """Applies received frames to a participant's state."""

    def __init__(self, parts: Parts, delivery: Delivery) -> None:
        super().__init__(parts)
        self._delivery = delivery

    def receive(
        self, frame: Frame, value: bytes, retrieval_hint: bytes, now_ms: int
    ) -> Step:
        """Apply one frame to the state, unless it is ignored."""
        message_id = frame.message_id
        if frame.channel_id != self._channel_id:
            return ignored(
                IgnoredReason.FOREIGN_CHANNEL, message_id, frame.channel_id[:80]
            )
        if frame.dialect is not self._profile.dialect:
            return ignored(IgnoredReason.FOREIGN_DIALECT, message_id, frame.dialect)
        # This frame answers the participants that requested its message, even if we
        # ignore the frame below. So our own queued answer is dropped.
        if frame.kind is FrameKind.CONTENT:
            self._repairer.responses.remove(message_id)
        is_lacking = self._incoming.lacks(message_id)
        # After a restore from an old snapshot, the participant lacks the messages that
        # it sent later. If one of these is missing or lost, its frame is not ignored as
        # an echo.
        if frame.sender_id == self._participant_id and not is_lacking:
            self._learn_hint(message_id, retrieval_hint)
            return ignored(IgnoredReason.OWN_ECHO, message_id)
        if frame.kind is FrameKind.EPHEMERAL:
            received = EphemeralReceived(message_id, frame.sender_id, frame.content)
            return Step((), (received,))
        log = self._log.entries
        is_content = frame.kind is FrameKind.CONTENT
        if is_content and (
            message_id in log
            or message_id in self._log.forgotten
            or message_id in self._incoming.waiting
        ):
            self._learn_hint(message_id, retrieval_hint)
            return ignored(IgnoredReason.DUPLICATE, message_id)
        unknown = [
            entry
            for entry in frame.causal_history
            # An entry with an empty id names no message, so the entry is ignored.
            if entry.message_id not in log
            and entry.message_id not in self._log.forgotten
            and entry.message_id not in (message_id, "")
        ]
        if unknown and self._log.is_older(frame.lamport or 0, message_id):
            # The message is so old that the log may have contained and dropped its
            # dependencies, so they do not become missing.
            unknown = []
        refused = refusal(frame, unknown, now_ms, self._profile, self._lamport)
        if refused is not None:
            return Step((), (refused,))
        return Step((), self._apply(frame, value, retrieval_hint, now_ms, unknown))

    def _apply(
        self,
        frame: Frame,
        value: bytes,
        retrieval_hint: bytes,
        now_ms: int,
        unknown: list[HistoryEntryLike],
    ) -> list[Event]:
        """Apply an accepted content or sync frame to the state.

        If the log may have contained and dropped the message, the message is not
        delivered, and its unknown dependencies are ignored. Otherwise, the frame has
        the effects of a sync frame, and the message's id is added to the bloom filter.
        """
        message_id = frame.message_id
        sender_id = frame.sender_id
        is_own = sender_id == self._participant_id
        if not is_own:
            self._repairer.participants.record_frame(sender_id, now_ms)
        self._lamport.tick(frame.lamport or 0, now_ms)
        events: list[Event] = []
        is_content = frame.kind is FrameKind.CONTENT
        if is_content and self._may_have_been_here(frame):
            is_content, unknown = False, []
            events.append(Ignored(IgnoredReason.OLDER_THAN_LOG, message_id))
            # If each copy of a message added its id, the bloom filter would reach its
            # limit and drop other ids.
            if not self._bloom.contains(message_id):
                self._bloom.add(message_id)
        elif is_content:
            events.append(Received(message_id, sender_id))
            self._incoming.arrived(message_id)
            self._repairer.requests.remove(message_id)
            self._bloom.add(message_id)
        else:
            events.append(SyncReceived(message_id, sender_id))
        requests_wait = self._repairer.requests.has_waiting
        others = max(1, len(self._repairer.participants))
        put_off = (
            self._sync.content_received if is_content else self._sync.sync_received
        )
        put_off(sender_id, now_ms, others, requests_wait=requests_wait)
        if self._outgoing.messages and not is_own:
            events += self._outgoing.review(frame, others)
        if frame.repair_request and self._profile.repair and not is_own:
            events += self._repairer.take_requests(frame, now_ms)
        # Usually, all messages in the log have a retrieval hint and no message waits,
        # so the loop is skipped.
        hintless, waiting = self._log.hintless, self._incoming.waiting
        if hintless or waiting:
            for entry in frame.causal_history:
                if entry.message_id in hintless or entry.message_id in waiting:
                    self._learn_hint(entry.message_id, entry.retrieval_hint)
        unmet: set[str] = set()
        if unknown:
            unmet, news = self._delivery.unmet(unknown, message_id, now_ms)
            events += news
        if is_content:
            message = Waiting(frame, value, retrieval_hint, now_ms, unmet)
            if unmet:
                events += self._delivery.wait(message_id, message, now_ms)
            else:
                events += self._delivery.deliver_all([message], now_ms)
        return events

    def _may_have_been_here(self, frame: Frame) -> bool:
        """Return whether the log may have contained and dropped this message."""
        message_id = frame.message_id
        return not self._incoming.lacks(message_id) and self._log.may_have_had(
            frame.lamport or 0, message_id
        )

    def take_copy(self, message_id: str, hint: bytes) -> None:
        """Repeat the effects of a recorded copy, a frame that `receive` ignored.

        The message's queued answer is dropped, and the copy's hint is stored.
        """
        self._repairer.responses.remove(message_id)
        self._learn_hint(message_id, hint)

    def note_hint(self, message_id: str, hint: bytes) -> bool:
        """Store a retrieval hint from the application; return whether it was stored."""
        if len(hint) > self._profile.hint_limit:
            return False
        is_logged = self._log.note_hint(message_id, hint)
        waiting = self._incoming.waiting.get(message_id)
        if waiting is not None:
            waiting.retrieval_hint = hint
        return is_logged or waiting is not None

    def _learn_hint(self, message_id: str, hint: bytes) -> None:
        """Store a retrieval hint for a message that has no hint yet."""
        if 0 < len(hint) <= self._profile.hint_limit:
            self._log.learn_hint(message_id, hint)
            self._incoming.learn_hint(message_id, hint)


def ignored(reason: IgnoredReason, message_id: str, detail: str = "") -> Step:
    """Return the result of a call that ignores a frame."""
    return Step((), (Ignored(reason, message_id, detail),))
