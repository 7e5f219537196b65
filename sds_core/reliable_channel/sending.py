"""Tracks our messages from `send` to the acknowledgement of their last chunk."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from random import Random

from sds_core import message_channel as sds
from sds_core.message_channel import Cause
from sds_core.message_channel.checks import check_name
from sds_core.message_channel.framing import hash_of_parts
from sds_core.reliable_channel.assembly import Assembly
from sds_core.reliable_channel.encryption import EncryptionError
from sds_core.reliable_channel.errors import MessageIdRefused
from sds_core.reliable_channel.events import (
    ChunkInfo,
    DropReason,
    EphemeralMessageDropped,
    LimitReached,
    MessageAcknowledged,
    MessagePossiblyAcknowledged,
    MessageSent,
    RateLimitReached,
    RetriesExhausted,
    SendError,
    SendingMessage,
    SendingMessageIrrecoverableError,
)
from sds_core.reliable_channel.inputs import DispatchFailed
from sds_core.reliable_channel.options import ReliableChannelOptions
from sds_core.reliable_channel.outputs import Output
from sds_core.reliable_channel.outward import Outward, Queued, Unframed
from sds_core.reliable_channel.rate_limit import Budget
from sds_core.reliable_channel.retries import Retries
from sds_core.reliable_channel.segmentation import SegmentationError
from sds_core.reliable_channel.state import Chunks, Message, Stage
from sds_core.reliable_channel.tape import TapedEncryption

_ONE_CHUNK = ChunkInfo((0,), 1)
_MOST_ID_CHARACTERS = 256


class Sending:
    """Sends messages, sends them again if necessary, and reports each chunk's state.

    Attributes:
        chunks: Our messages with at least one chunk that is neither acknowledged nor
            failed.
        retries: Retry timers of the chunks that are not acknowledged.
        waits_for_budget: Whether frames wait for the rate limit. When the value becomes
            True, an event reports the wait.
    """

    def __init__(
        self,
        participant: sds.MessageChannel,
        assembly: Assembly,
        contents: TapedEncryption,
        outward: Outward,
        budget: Budget,
        random: Random,
        options: ReliableChannelOptions,
    ) -> None:
        self._participant = participant
        self._assembly = assembly
        self._contents = contents
        self._outward = outward
        self._budget = budget
        self._random = random
        self._limits = options.limits
        self.waits_for_budget = False
        self.chunks = Chunks()
        self.retries = Retries(options)

    # -- calls by the application

    def new_id(self, payload: bytes, now_ms: int, random: Random) -> str:
        """Return a new id for a payload. Equal payloads have different ids."""
        return hash_of_parts(
            self._participant.channel_id.encode(),
            self._participant.participant_id.encode(),
            now_ms.to_bytes(8, "big"),
            random.getrandbits(128).to_bytes(16, "big"),
            payload,
        )

    def check_id(self, message_id: str) -> None:
        """Check an id that the application has chosen for a message.

        Raises:
            MessageIdRefused: The id is too long, is not valid text, or belongs to
                another message.
        """
        try:
            check_name("message_id", message_id, _MOST_ID_CHARACTERS)
        except ValueError as error:
            raise MessageIdRefused(message_id, str(error)) from error
        # Chunks of a message may still wait for their frames after the message is no
        # longer tracked. Until the chunks are sent, the message's id stays taken.
        is_taken = self.chunks.get(message_id) is not None
        if is_taken or self._outward.has_unframed(message_id):
            raise MessageIdRefused(message_id, "another message has this id")

    def send(self, payload: bytes, given_id: str, now_ms: int, out: Output) -> None:
        """Split a message into chunks, and queue them until `release` sends them."""
        message_id = given_id or self.new_id(payload, now_ms, self._random)
        out.message_id = message_id
        error, detail, contents = None, "", [payload]
        if not payload:
            error = SendError.EMPTY_PAYLOAD
        else:
            try:
                contents = self._split(payload)
            except (SegmentationError, sds.FrameTooLarge) as refused:
                error, detail = SendError.SIZE_TOO_LARGE, str(refused)
            except EncryptionError as refused:
                error, detail = SendError.ENCODING_FAILED, str(refused)
        if not error and not self._outward.has_room(len(contents), len(payload)):
            error = SendError.QUEUE_FULL
            detail = f"{len(self._outward)} frames wait already"
        if error:
            out.events.append(_failed(message_id, error, detail))
            return
        message = Message(message_id, [""] * len(contents))
        self.chunks.add(message)
        for chunk, content in enumerate(contents):
            self._outward.wait(Unframed(message_id, chunk, content))
        while len(self.chunks) > self._limits.messages:
            oldest = self.chunks.oldest()
            self.chunks.drop(oldest)
            for sds_id in oldest.sds_ids:
                self._stop(sds_id)
            out.events.append(LimitReached("messages", oldest.message_id))

    def send_ephemeral(
        self, payload: bytes, given_id: str, now_ms: int, out: Output
    ) -> None:
        """Put an ephemeral message into one frame, and dispatch it now or drop it."""
        out.message_id = given_id or self.new_id(payload, now_ms, self._random)
        error, detail = None, ""
        if not self._assembly.is_one_chunk(payload):
            error = SendError.SIZE_TOO_LARGE
            detail = f"{len(payload)} bytes; an ephemeral message is never segmented"
        else:
            try:
                # Empty content is not encrypted, so that the participant can refuse it.
                content = payload and self._contents.encrypt(payload)
                step = self._participant.send_ephemeral(content, now_ms)
            except sds.EmptyContent:
                error = SendError.EMPTY_PAYLOAD
            except EncryptionError as refused:
                error, detail = SendError.ENCODING_FAILED, str(refused)
            except sds.FrameTooLarge as refused:
                error, detail = SendError.SIZE_TOO_LARGE, str(refused)
        if not error and not self._outward.is_online:
            error, detail = SendError.SENDING_FAILED, "the node is offline"
        if error:
            out.events.append(_failed(out.message_id, error, detail))
            return
        (broadcast,) = step.broadcasts
        reason = self._budget.drop_reason(now_ms)
        if reason is None and not self._outward.allows(Cause.EPHEMERAL, now_ms):
            # The rate limit allows the frame, but other frames wait. If this frame were
            # sent now, it would overtake them.
            reason = DropReason.RATE_LIMIT_REACHED
        if reason is not None:
            out.events.append(EphemeralMessageDropped(out.message_id, reason))
            return
        # For an ephemeral message, the id in the broadcast is used only in events.
        # Events contain the application's id, so the application's id replaces the SDS
        # id.
        self._submit(broadcast._replace(message_id=out.message_id), now_ms, out)

    # -- frames of the SDS participant, and the results of their dispatch

    def submit(
        self, broadcasts: Iterable[sds.Broadcast], now_ms: int, out: Output
    ) -> None:
        """Queue sync messages and repairs, which `release` sends."""
        for broadcast in broadcasts:
            self._submit(broadcast, now_ms, out)

    def retry(self, now_ms: int, out: Output) -> None:
        """Queue retries that are due. Call `retry` only while the node is online."""
        to_send, exhausted = self.retries.take_due(now_ms)
        for sds_id in to_send:
            frame = self.retries.frame(sds_id)
            self._submit(sds.Broadcast(Cause.RETRY, sds_id, frame), now_ms, out)
        for sds_id in exhausted:
            self._give_up(sds_id, out)

    def release(self, now_ms: int, out: Output) -> None:
        """Dispatch the queued frames that the node and the rate limit allow now."""
        frame = partial(self._frame, now_ms, out)
        for dispatch in self._outward.release(now_ms, frame):
            out.dispatches.append(dispatch)
            sds_id = self._outward.sds_id(dispatch.number)
            if dispatch.cause is Cause.CONTENT:
                # The causal histories of our next messages contain this hash as a
                # retrieval hint.
                self._participant.note_retrieval_hint(sds_id, dispatch.message_hash)
            if dispatch.cause in (Cause.CONTENT, Cause.RETRY):
                self._mark(SendingMessage, Stage.SENDING, sds_id, out)
        waits = self._outward.waits_for_budget
        if waits and not self.waits_for_budget:
            out.events.append(RateLimitReached(len(self._outward)))
        self.waits_for_budget = waits

    def dispatched(
        self, queued: Queued, message_hash: bytes, now_ms: int, out: Output
    ) -> None:
        """Record that the network accepted a frame."""
        sds_id = queued.sds_id
        if queued.cause in (Cause.CONTENT, Cause.RETRY):
            # A retry has a new time and therefore a new hash. Stores find the retry by
            # the new hash, so this hash becomes the retrieval hint.
            self._participant.note_retrieval_hint(sds_id, message_hash)
            self._mark(MessageSent, Stage.SENT, sds_id, out)
            self.retries.sending_ended(sds_id, now_ms)
        elif queued.cause is Cause.EPHEMERAL:
            out.events.append(MessageSent(sds_id, _ONE_CHUNK))

    def failed(
        self, queued: Queued, failure: DispatchFailed, now_ms: int, out: Output
    ) -> None:
        """Record that the network did not accept a frame."""
        sds_id = queued.sds_id
        if queued.cause in (Cause.CONTENT, Cause.RETRY):
            if failure.error is None:
                self.retries.sending_ended(sds_id, now_ms)
            else:
                self._take_back(queued.cause, sds_id, now_ms)
                self._fail_chunk(sds_id, failure.error, failure.detail, out)
        elif queued.cause is Cause.EPHEMERAL:
            error = failure.error or SendError.SENDING_FAILED
            out.events.append(_failed(sds_id, error, failure.detail))

    def possibly_acknowledged(self, sds_id: str, out: Output) -> None:
        """Record that another participant's filter seems to hold a chunk."""
        tracked = self.chunks.find(sds_id)
        # Only the first filter that seems to hold a chunk causes an event.
        stage = Stage.POSSIBLY_ACKNOWLEDGED
        if tracked is not None and tracked[1] not in tracked[0].stages[stage]:
            self._mark(MessagePossiblyAcknowledged, stage, sds_id, out)

    def acknowledged(self, sds_id: str, out: Output) -> None:
        """Record that another participant has a chunk."""
        self._stop(sds_id)
        self._mark(MessageAcknowledged, Stage.ACKNOWLEDGED, sds_id, out)

    # -- helpers

    def _split(self, payload: bytes) -> list[bytes]:
        """Return the contents of a message's chunks.

        If a message has several chunks, the frame of each chunk is short enough. If the
        message has only one chunk, the chunk's frame may still be too long.

        Raises:
            PayloadTooLarge: The payload needs too many segments.
            FrameTooLarge: The content does not fit into any frame.
            EncryptionError: A chunk could not be encrypted.
        """
        segments = self._assembly.split(payload)
        contents = [self._contents.encrypt(segment) for segment in segments]
        profile, longest = self._participant.profile, max(map(len, contents))
        is_split = len(contents) > 1
        limit = profile.max_content_bytes if is_split else profile.max_frame_bytes
        if longest > limit:
            raise sds.FrameTooLarge(longest, limit)
        return contents

    def _frame(self, now_ms: int, out: Output, unframed: Unframed) -> Queued | None:
        message, chunk = self.chunks.get(unframed.message_id), unframed.chunk
        try:
            step = self._participant.send(unframed.content, now_ms)
        except sds.FrameTooLarge as error:
            if message is not None:
                self._fail(message, chunk, SendError.SIZE_TOO_LARGE, str(error), out)
            return None
        (broadcast,) = step.broadcasts
        sds_id = broadcast.message_id
        # If a message is no longer tracked, its chunks are sent once and cause no
        # events.
        if message is not None:
            self.chunks.name(message, chunk, sds_id)
            for dropped in self.retries.add(sds_id, broadcast.value):
                out.events.append(LimitReached("retries", dropped))
                self._give_up(dropped, out)
        for event in step.events:
            if isinstance(event, sds.Evicted) and event.buffer is sds.Buffer.OUTGOING:
                self._stop(event.message_id)
                self._give_up(event.message_id, out)
        try:
            return self._outward.encrypted(Cause.CONTENT, sds_id, broadcast.value)
        except EncryptionError as error:
            self._take_back(Cause.CONTENT, sds_id, now_ms)
            self._fail_chunk(sds_id, SendError.ENCODING_FAILED, str(error), out)
            return None

    def _submit(self, broadcast: sds.Broadcast, now_ms: int, out: Output) -> None:
        sds_id = broadcast.message_id
        try:
            dropped = self._outward.submit(broadcast.cause, sds_id, broadcast.value)
        except EncryptionError as error:
            detail = str(error)
            if broadcast.cause is Cause.EPHEMERAL:
                error_event = _failed(sds_id, SendError.ENCODING_FAILED, detail)
                out.events.append(error_event)
            else:
                self._take_back(broadcast.cause, sds_id, now_ms)
                self._fail_chunk(sds_id, SendError.ENCODING_FAILED, detail, out)
            return
        if dropped is not None:
            out.events.append(LimitReached("queue", dropped))
            # If a retry was dropped, it becomes due again after one retry interval.
            self.retries.sending_ended(dropped, now_ms)

    def _mark(
        self,
        kind: type[
            SendingMessage
            | MessageSent
            | MessagePossiblyAcknowledged
            | MessageAcknowledged
            | RetriesExhausted
        ],
        stage: Stage,
        sds_id: str,
        out: Output,
    ) -> None:
        tracked = self.chunks.find(sds_id)
        if tracked is None:
            return
        message, chunk = tracked
        info = message.mark(chunk, stage)
        out.events.append(kind(message.message_id, info))
        if message.is_settled:
            self.chunks.drop(message)

    def _give_up(self, sds_id: str, out: Output) -> None:
        self._mark(RetriesExhausted, Stage.EXHAUSTED, sds_id, out)

    def _take_back(self, cause: Cause, sds_id: str, now_ms: int) -> None:
        """Withdraw a refused message from SDS, unless the network accepted it before.

        If SDS kept the message, all later causal histories would name it, and receivers
        would wait for it, although no participant can send it. An attempt without a
        result, for example because the process ended, counts as not accepted.
        """
        if cause is Cause.RETRY:
            tracked = self.chunks.find(sds_id)
            if tracked is None or tracked[1] in tracked[0].stages[Stage.SENT]:
                return
        elif cause is not Cause.CONTENT:
            return
        if self._participant.withdraw(sds_id, now_ms):
            self._outward.withdraw(sds_id, Cause.REPAIR)

    def _fail_chunk(
        self, sds_id: str, error: SendError, detail: str, out: Output
    ) -> None:
        self._stop(sds_id)
        tracked = self.chunks.find(sds_id)
        if tracked is None:
            return
        message, chunk = tracked
        # The network can refuse a retry of a chunk that was acknowledged meanwhile.
        if chunk not in message.stages[Stage.ACKNOWLEDGED]:
            self._fail(message, chunk, error, detail, out)

    def _fail(
        self, message: Message, chunk: int, error: SendError, detail: str, out: Output
    ) -> None:
        info = message.mark(chunk, Stage.FAILED)
        out.events.append(_failed(message.message_id, error, detail, info))
        if message.is_settled:
            self.chunks.drop(message)

    def _stop(self, sds_id: str) -> None:
        self.retries.stop(sds_id)
        self._outward.withdraw(sds_id)


def _failed(
    message_id: str, error: SendError, detail: str, chunk_info: ChunkInfo = _ONE_CHUNK
) -> SendingMessageIrrecoverableError:
    return SendingMessageIrrecoverableError(message_id, chunk_info, error, detail)
