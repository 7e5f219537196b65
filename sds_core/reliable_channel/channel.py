"""A reliable channel as a state machine without I/O and without a clock.

The caller applies inputs, each with its time. The outputs are messages that the caller
dispatches, queries that it sends to a store, and events for the application:

    Send ──▶ segments ──▶ SDS ──▶ encryption ──▶ rate limit ──▶ Output.dispatches
    Arrived ──▶ decryption ──▶ SDS, in causal order ──▶ reassembly ──▶ Output.events

When `next_deadline_ms` is reached, apply the input `Advance`, which does everything
that is due. Source of all rules: RELIABLE-CHANNEL-API.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from random import Random

from sds_core import message_channel as sds
from sds_core.reliable_channel.assembly import Assembly
from sds_core.reliable_channel.encryption import Encryption, EncryptionScope
from sds_core.reliable_channel.errors import NotStarted, StateError
from sds_core.reliable_channel.events import Event, LimitReached
from sds_core.reliable_channel.fetching import Fetching
from sds_core.reliable_channel.inputs import (
    Advance,
    Arrived,
    ConnectionChanged,
    Dispatched,
    DispatchFailed,
    Input,
    Restarted,
    Send,
    SendEphemeral,
    Start,
    Stop,
    StoreAnswered,
    StoreFailed,
)
from sds_core.reliable_channel.inward import Intake, Inward
from sds_core.reliable_channel.options import ReliableChannelOptions
from sds_core.reliable_channel.outputs import Output
from sds_core.reliable_channel.outward import Outward
from sds_core.reliable_channel.participant_driver import ParticipantDriver
from sds_core.reliable_channel.rate_limit import Budget, RateLimit
from sds_core.reliable_channel.sending import Sending
from sds_core.reliable_channel.state import SEAL, ChannelState, RunningState
from sds_core.reliable_channel.tape import TapedEncryption
from sds_core.wire import HistoryEntry


class ReliableChannelCore:
    """One participant of a reliable channel.

    Times are Unix ms. If an input has an earlier time than the previous input, the
    previous input's time is used. Only `Restarted` may set the time back, because the
    clock was ahead before the restart; all stored times then move back too.

    Args:
        channel_id: Id of the channel, the same for all participants.
        sender_id: Id of this participant, unique in the channel and the same after each
            restart.
        content_topic: Topic of the channel's messages. No other channel may use this
            topic.
        pubsub_topic: Topic on which the node relays the messages.
        random: Source of random ids, and of random times of sync messages.
        encryption: Encrypts frames or segments, as `options.encryption_scope` requires.
            If None, nothing is encrypted.
    """

    def __init__(
        self,
        channel_id: str,
        sender_id: str,
        content_topic: str,
        *,
        pubsub_topic: str,
        now_ms: int,
        random: Random,
        options: ReliableChannelOptions | None = None,
        encryption: Encryption | None = None,
    ) -> None:
        options = ReliableChannelOptions() if options is None else options
        participant = sds.MessageChannel(
            channel_id,
            sender_id,
            now_ms=now_ms,
            random=random,
            profile=options.participant_profile(),
        )
        self._now_ms, self._random = now_ms, random
        self._set_up(participant, content_topic, pubsub_topic, options, encryption)

    def _set_up(
        self,
        participant: sds.MessageChannel,
        content_topic: str,
        pubsub_topic: str,
        options: ReliableChannelOptions,
        encryption: Encryption | None,
    ) -> None:
        self._participant = participant
        self._content_topic = content_topic
        self._pubsub_topic = pubsub_topic
        self._options = self._options_after_restart = options
        self._encryption = encryption
        self._tape = TapedEncryption(encryption)
        frames = contents = TapedEncryption(None)
        if options.encryption_scope is EncryptionScope.FRAME:
            frames = self._tape
        else:
            contents = self._tape
        self._budget = (
            Budget() if options.rate_limit is None else RateLimit(options.rate_limit)
        )
        self._outward = Outward(
            content_topic, pubsub_topic, frames, self._budget, options
        )
        self._assembly = Assembly(options.fitting_segmentation())
        self._sending = Sending(
            participant,
            self._assembly,
            contents,
            self._outward,
            self._budget,
            self._random,
            options,
        )
        self._intake = Intake(options)
        self._inward = Inward(
            participant, content_topic, pubsub_topic, frames, options.limits.ephemerals
        )
        self._fetching = Fetching(options, self._inward)
        self._driver = ParticipantDriver(
            participant,
            self._sending,
            self._outward,
            self._assembly,
            contents,
            options,
            self._random,
        )

    # -- identity

    @property
    def channel_id(self) -> str:
        """Id of the channel."""
        return self._participant.channel_id

    @property
    def sender_id(self) -> str:
        """Id of this participant."""
        return self._participant.participant_id

    @property
    def content_topic(self) -> str:
        """Topic of the channel's messages."""
        return self._content_topic

    @property
    def missing(self) -> tuple[HistoryEntry, ...]:
        """Missing messages, in the order in which causal histories first named them."""
        return self._participant.missing

    def new_message_id(self, payload: bytes, now_ms: int, random: Random) -> str:
        """Return an id for a message that is sent later by `Send(payload, message_id)`.

        The application knows the id before it sends the message, so it can handle even
        the first event of the message. `random` must not be the channel's own source,
        because a replay of inputs does not repeat this call.
        """
        return self._sending.new_id(payload, now_ms, random)

    @property
    def sync_status(self) -> sds.SyncStatus:
        """Numbers of received, missing and lost chunks."""
        return self._participant.sync_status

    # -- time

    @property
    def latest_ms(self) -> int:
        """Time of the latest input, Unix ms."""
        return self._now_ms

    @property
    def is_started(self) -> bool:
        """Whether the channel is started and processes messages."""
        return self._driver.is_started

    @property
    def next_deadline_ms(self) -> float:
        """When to apply `Advance` next, Unix ms; inf if nothing is planned."""
        if not self.is_started:
            return inf
        online_ms = inf
        if self._outward.is_online:
            online_ms = min(self._sending.retries.next_ms, self._assembly.next_ms)
        return min(
            self._intake.next_ms,
            online_ms,
            self._outward.next_ms(self._now_ms),
            self._fetching.next_ms,
            self._driver.next_ms,
        )

    def apply(
        self, event: Input, now_ms: int, *, ciphertexts: Sequence[bytes] = ()
    ) -> Output:
        """Apply one input. A replay must pass the `ciphertexts` of the original output.

        Raises:
            NotStarted: The input sends a message, but the channel is not started.
            MessageIdRefused: The message id is too long or not valid text, or another
                message has it. The state of the channel does not change.
        """
        if isinstance(event, Send | SendEphemeral):
            if not self.is_started:
                raise NotStarted(self.channel_id)
            if event.message_id:
                self._sending.check_id(event.message_id)
        if isinstance(event, Restarted) and now_ms < self._now_ms:
            self._set_back(self._now_ms - now_ms)
        self._now_ms = now_ms = max(now_ms, self._now_ms)
        self._tape.replay(ciphertexts)
        out = Output()
        self._take(event, now_ms, out)
        if self.is_started:
            self._do_due(now_ms, out)
        out.ciphertexts = self._tape.take_recorded()
        return out

    # -- snapshot for a restart

    def snapshot(self) -> bytes:
        """Return the whole state as bytes, from which `restore` makes a channel.

        The call seeds the random source of this channel again, and stores the seed.
        Therefore, this channel and a restored channel draw the same random values.
        """
        seed = self._random.randbytes(32)
        self._random.seed(seed)
        return SEAL.pack(self._state(seed))

    def _state(self, seed: bytes) -> ChannelState:
        driver, timer = self._driver, self._driver.sync_timer
        return ChannelState(
            content_topic=self._content_topic,
            participant=self._participant.snapshot(),
            now_ms=self._now_ms,
            seed=seed,
            messages=self._sending.chunks.state(),
            retries=self._sending.retries.state(),
            outward=self._outward.state(),
            intake=self._intake.state(),
            segments=self._assembly.state(),
            ephemerals=self._inward.state(),
            budget=self._budget.state(),
            running=RunningState(
                is_started=self.is_started,
                is_online=self._outward.is_online,
                waits_for_budget=self._sending.waits_for_budget,
                processed_ms=self._intake.processed_ms,
                sweep_ms=driver.sweep_ms,
                repair_ms=driver.repair_ms,
                sync_ms=timer.next_ms,
                latest_sync_ms=timer.latest_ms,
                requests_sync_ms=timer.requests_ms,
                fetching=self._fetching.state,
            ),
            finished=self._assembly.finished,
            options=self._options,
            profile=self._participant.profile,
        )

    @classmethod
    def restore(
        cls,
        blob: bytes,
        *,
        pubsub_topic: str,
        options: ReliableChannelOptions | None = None,
        encryption: Encryption | None = None,
    ) -> ReliableChannelCore:
        """Restore a channel from a snapshot. In a new process, apply `Restarted` next.

        If the options differ from the stored channel's options, the new options apply
        from `Restarted` on. A replay of inputs before `Restarted` thus has the same
        result as the first run.

        Raises:
            StateError: The snapshot is invalid, or does not fit the options.
        """
        options = ReliableChannelOptions() if options is None else options
        state = SEAL.unpack(blob)
        self = cls.__new__(cls)
        self._random = Random(state.seed)  # noqa: S311 - ids and times, no secrets
        # Options that do not fit are refused before anything is replayed.
        profile = options.participant_profile()
        self._load(state, pubsub_topic, options, profile, encryption)
        made_under = state.options or options
        made_with = state.profile or made_under.earlier_participant_profile()
        if (made_under, made_with) != (options, profile):
            self._random.seed(state.seed)
            self._load(state, pubsub_topic, made_under, made_with, encryption)
            self._options_after_restart = options
        return self

    def _load(
        self,
        state: ChannelState,
        pubsub_topic: str,
        options: ReliableChannelOptions,
        profile: sds.Profile,
        encryption: Encryption | None,
    ) -> list[Event]:
        """Load a state; return the events of what the options drop from it."""
        try:
            participant = sds.MessageChannel.restore(
                state.participant,
                random=self._random,
                profile=profile,
                # `Start` calls `resume`.
                was_off=False,
            )
        except sds.SnapshotError as error:
            raise StateError(error.detail) from error
        self._now_ms = state.now_ms
        self._set_up(
            participant, state.content_topic, pubsub_topic, options, encryption
        )
        self._sending.chunks.restore(state.messages)
        self._sending.retries.restore(state.retries)
        self._outward.restore(state.outward)
        self._intake.restore(state.intake)
        dropped = self._assembly.restore(state.segments, state.finished)
        self._inward.restore(state.ephemerals)
        self._budget.restore(state.budget)
        self._restore_running(state.running)
        return dropped

    def _restore_running(self, running: RunningState) -> None:
        driver, timer = self._driver, self._driver.sync_timer
        driver.is_started = running.is_started
        self._outward.is_online = running.is_online
        self._sending.waits_for_budget = running.waits_for_budget
        self._intake.processed_ms = running.processed_ms
        driver.sweep_ms = running.sweep_ms
        driver.repair_ms = running.repair_ms
        timer.next_ms = running.sync_ms
        timer.latest_ms = running.latest_sync_ms
        timer.requests_ms = running.requests_sync_ms
        self._fetching.restore(running.fetching)

    def _take(self, event: Input, now_ms: int, out: Output) -> None:
        match event:
            case Send(payload, message_id):
                self._sending.send(payload, message_id, now_ms, out)
                self._sending.release(now_ms, out)
            case SendEphemeral(payload, message_id):
                self._sending.send_ephemeral(payload, message_id, now_ms, out)
            case Arrived():
                self._arrived([event], now_ms, out)
            case Dispatched() | DispatchFailed():
                self._dispatch_ended(event, now_ms, out)
            case StoreAnswered(_, messages):
                if self._fetching.answered(event, out):
                    self._arrived(messages, now_ms, out)
            case StoreFailed(number):
                self._fetching.failed(number)
            case ConnectionChanged():
                self._connection_changed(event, now_ms)
            case Start() if not self.is_started:
                self._participant.resume(now_ms)
                self._driver.start(now_ms)
                self._fetching.start(now_ms)
            case Stop():
                self._stop()
            case Restarted(options):
                self._stop()
                options = options or self._options_after_restart
                out.events += self._change_options(options)
                self._outward.requeue()
            case Start() | Advance():
                pass

    def _do_due(self, now_ms: int, out: Output) -> None:
        for arrived in self._intake.take(now_ms):
            self._receive(arrived, now_ms, out)
        self._driver.sweep(now_ms, out)
        if self._outward.is_online:
            out.events += self._assembly.expire(now_ms)
            self._sending.retry(now_ms, out)
        self._driver.sync(now_ms, out)
        self._sending.release(now_ms, out)
        if self._fetching.next_ms <= now_ms:
            hints_of = self._participant.retrieval_hints_of
            missing = {
                entry.message_id: hints_of(entry.message_id) for entry in self.missing
            }
            self._fetching.make_due(missing, now_ms, out)

    # -- inputs

    def _set_back(self, by_ms: int) -> None:
        """Move the times back that neither `Restarted` nor `Start` sets.

        The participant moves its own times.
        """
        self._now_ms -= by_ms
        self._budget.set_back(by_ms)
        self._intake.processed_ms -= by_ms
        self._sending.retries.set_back(by_ms)
        self._fetching.forget_times()

    def _stop(self) -> None:
        self._driver.stop()
        self._outward.is_online = False
        self._fetching.stop()

    def _change_options(self, options: ReliableChannelOptions) -> list[Event]:
        profile = options.participant_profile()
        if (options, profile) == (self._options, self._participant.profile):
            return []
        return self._load(
            self._state(b""), self._pubsub_topic, options, profile, self._encryption
        )

    def _receive(self, arrived: Arrived, now_ms: int, out: Output) -> None:
        events, unusable = self._inward.receive(arrived, now_ms)
        self._driver.report(events, now_ms, out)
        if unusable is not None:
            out.events.append(unusable)

    def _arrived(self, messages: Iterable[Arrived], now_ms: int, out: Output) -> None:
        if not self.is_started:
            return
        for arrived in messages:
            if self._inward.is_ephemeral(arrived):
                self._receive(arrived, now_ms, out)
                continue
            dropped = self._intake.add(arrived)
            out.events += [LimitReached("intake")] * dropped

    def _connection_changed(self, connection: ConnectionChanged, now_ms: int) -> None:
        was_offline = connection.is_online and not self._outward.is_online
        self._outward.is_online = connection.is_online
        if was_offline:
            self._driver.back_online(now_ms)
            self._assembly.touch(now_ms)
        self._fetching.connected(
            has_store=connection.has_store, was_offline=was_offline
        )

    def _dispatch_ended(
        self, result: Dispatched | DispatchFailed, now_ms: int, out: Output
    ) -> None:
        ended = self._outward.ended(result.number)
        if ended is None:
            return
        queued, message_hash = ended
        if isinstance(result, Dispatched):
            self._driver.dispatched(queued.cause, now_ms)
            self._sending.dispatched(queued, message_hash, now_ms, out)
        else:
            self._driver.failed(queued.cause, now_ms)
            self._sending.failed(queued, result, now_ms, out)
