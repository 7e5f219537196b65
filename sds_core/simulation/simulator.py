"""Simulates the participants of many channels on one network, in virtual time.

`sds_core.message_channel` implements the participants. The simulator acts as
the application of each participant: it passes new messages and received frames to the
participant's `MessageChannel`, and calls `advance` when `next_deadline_ms` is reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from sds_core.message_channel.channel import MessageChannel
from sds_core.message_channel.events import Broadcast, Cause, Step
from sds_core.simulation.cast import NEVER_MS, Channel, Flight, Member
from sds_core.simulation.clock import Clock
from sds_core.simulation.log import (
    META,
    PUBSUB_TOPIC,
    Arrival,
    Entry,
    Happening,
    Presence,
    Sighting,
    Transmission,
    content_topic,
)
from sds_core.simulation.profile_share import ProfileShare
from sds_core.simulation.scenario import ChannelGroup, LostTail, Scenario
from sds_core.simulation.traffic import Attendance, occasions
from sds_core.simulation.world import World
from sds_core.waku.message import message_hash
from sds_core.wire import FrameKind, decode, encode

_SYNC_CONTENT = b"sync"
_NANOSECONDS_PER_MS = 1_000_000


def simulate(scenario: Scenario, seed: int, start_ms: int) -> Iterator[Entry]:
    """Yield a log entry for each event, in order of simulation time.

    The same arguments give the same entries. Memory use depends on the state of the
    participants, not on the number of entries.
    """
    yield from _Simulation(scenario, seed, start_ms).run()


class _Simulation(World[Entry, Transmission]):
    def __init__(self, scenario: Scenario, seed: int, start_ms: int) -> None:
        count = scenario.participants
        super().__init__(scenario, count, seed, start_ms, Sighting)
        streams = self._streams
        self._scenario = scenario
        self._attendance = attendance = Attendance(scenario, streams)
        self._lost_tails: dict[str, LostTail] = {}
        # Ids of messages that become sync messages, because the simulated application
        # removes their content before the broadcast.
        self._library_syncs: set[str] = set()
        self._names = [f"participant-{index + 1:03}" for index in range(count)]
        skew, total_ms = scenario.clocks, scenario.total_ms
        self._clocks = [
            Clock.drawn(start_ms, skew, streams.scalar("clock", name), total_ms)
            for name in self._names
        ]
        self._memberships: list[list[Member]] = [[] for _ in range(count)]
        # Actions of the same time run in the order in which they were planned. Arrivals
        # of participants are planned first, so that a participant that joins at the
        # start is present when the first message is sent.
        for index in range(count):
            self._plan_change(index, attendance.changes(index))
        for group in scenario.channels:
            for channel_id in group.channel_ids():
                channel = self._open(group, channel_id)
                self._plan_occasion(channel)
                if group.lost_tail is not None:
                    tail = partial(self._send_tail, channel, group.lost_tail)
                    self._agenda.add(self._talk_end_ms, tail)

    # -- the cast

    def _open(self, group: ChannelGroup, channel_id: str) -> Channel:
        scenario, streams = self._scenario, self._streams
        count = group.participants or scenario.participants
        drawn = streams.scalar("members", channel_id)
        indices = drawn.sample(range(scenario.participants), count)
        channel = Channel(
            channel_id,
            group,
            content_topic(channel_id),
            occasions(
                group.traffic,
                count,
                scenario.duration_ms,
                streams.scalar("traffic", channel_id),
            ),
            streams.scalar("speakers", channel_id),
            streams.scalar("content", channel_id),
        )
        shares = _shared_out(group.profiles or scenario.profiles, count)
        for position, index in enumerate(indices):
            name = self._names[index]
            pattern = self._attendance.pattern(index)
            share = shares[position]
            member = Member(
                index,
                position,
                name,
                channel,
                self._clocks[index],
                share.profile(),
                _ms(share.library_syncs_every_s),
                streams.scalar("participant", name, channel_id),
                None if pattern is None else _ms(pattern.fetch_after_s),
                "kept" if pattern is None else pattern.state,
            )
            channel.members.append(member)
            self._memberships[index].append(member)
            if member.library_syncs_every_ms is not None:
                # Each participant sends its first sync message at a random time within
                # its interval, because timers of real participants do not start at the
                # same time.
                phase = streams.scalar("library syncs", name, channel_id).random()
                first_ms = int(phase * member.library_syncs_every_ms)
                sync = partial(self._library_sync, member)
                self._agenda.add(self._start_ms + first_ms, sync)
        channel.indices = np.array(indices, np.intp)
        return channel

    def _plan_change(self, index: int, changes: Iterator[tuple[int, bool]]) -> None:
        for elapsed_ms, present in changes:
            change = partial(self._change, index, changes, present)
            self._agenda.add(self._start_ms + elapsed_ms, change)
            return

    def _change(
        self,
        index: int,
        changes: Iterator[tuple[int, bool]],
        present: bool,
        now_ms: int,
    ) -> None:
        for member in self._memberships[index]:
            if present:
                self._come(member, now_ms)
            else:
                self._leave(member, now_ms)
        self._plan_change(index, changes)

    def _come(self, member: Member, now_ms: int) -> None:
        if member.gone:
            return
        is_new = not member.snapshot and member.sds is None
        if member.snapshot:
            member.sds = MessageChannel.restore(
                member.snapshot, random=member.random, profile=member.profile
            )
            member.snapshot = b""
        elif member.sds is None:
            member.sds = MessageChannel(
                member.channel.channel_id,
                member.participant,
                now_ms=member.clock.reading(now_ms),
                random=member.random,
                profile=member.profile,
            )
        self._set_present(member, now_ms, present=True, is_new=is_new)
        self._plan_wake(member, member.sds, now_ms)
        if member.missed and member.fetch_after_ms is not None:
            member.fetch_ms = now_ms + member.fetch_after_ms
            self._agenda.add(member.fetch_ms, partial(self._fetch, member))

    def _fetch(self, member: Member, now_ms: int) -> None:
        # If the participant was offline again since this fetch was planned, it fetches
        # later, or is offline.
        if now_ms != member.fetch_ms:
            return
        missed, member.missed = member.missed, []
        for flight in missed:
            self._receive(member, flight, now_ms)

    def _receive(self, member: Member, flight: Flight, now_ms: int) -> None:
        sds = member.sds
        if sds is None or not member.present:
            is_content = flight.frame.kind is FrameKind.CONTENT
            if is_content and member.fetch_after_ms is not None:
                member.missed.append(flight)
            return
        self._log(Arrival(now_ms, member.participant, flight.transmission))
        step = sds.receive_frame(
            flight.frame,
            flight.value,
            member.clock.reading(now_ms),
            retrieval_hint=flight.retrieval_hint,
        )
        self._follow(member, sds, step, now_ms)

    def _leave(self, member: Member, now_ms: int) -> None:
        if not member.present or member.sds is None:
            return
        if member.state == "restored":
            member.snapshot = member.sds.snapshot(member.clock.reading(now_ms))
        if member.state != "kept":
            member.sds = None
        member.wake_ms = member.wake_reading_ms = member.fetch_ms = NEVER_MS
        self._set_present(member, now_ms, present=False)

    def _set_present(
        self, member: Member, now_ms: int, *, present: bool, is_new: bool = False
    ) -> None:
        member.present = present
        channel_id, who = member.channel.channel_id, member.participant
        self._log(Presence(now_ms, channel_id, who, present, member.profile, is_new))

    # -- traffic

    def _plan_occasion(self, channel: Channel) -> None:
        for elapsed_ms in channel.occasions:
            self._agenda.add(self._start_ms + elapsed_ms, partial(self._speak, channel))
            return

    def _speak(self, channel: Channel, now_ms: int) -> None:
        self._plan_occasion(channel)
        traffic = channel.group.traffic
        candidates = channel.members
        if traffic.per == "channel":
            candidates = [member for member in candidates if member.present]
        drawn = channel.speakers.random()
        if candidates:
            speaker = candidates[int(drawn * len(candidates))]
            for message in range(traffic.burst):
                at_ms = now_ms + message * traffic.burst_spacing_ms
                if at_ms < self._talk_end_ms:
                    self._agenda.add(at_ms, partial(self._say, speaker))

    def _say(self, member: Member, now_ms: int) -> None:
        if not member.present or member.sds is None:
            return
        channel = member.channel
        ephemeral = channel.contents.random() < channel.group.traffic.ephemeral_share
        content = self._content(channel)
        if ephemeral:
            step = member.sds.send_ephemeral(content, member.clock.reading(now_ms))
        else:
            step = self._send(member, member.sds, content, now_ms)
        self._follow(member, member.sds, step, now_ms)

    def _library_sync(self, member: Member, now_ms: int) -> None:
        if member.library_syncs_every_ms is not None:
            again_ms = now_ms + member.library_syncs_every_ms
            self._agenda.add(again_ms, partial(self._library_sync, member))
        if not member.present or member.sds is None:
            return
        step = self._send(member, member.sds, _SYNC_CONTENT, now_ms)
        self._library_syncs.update(one.message_id for one in step.broadcasts)
        self._follow(member, member.sds, step, now_ms)

    def _send_tail(self, channel: Channel, tail: LostTail, now_ms: int) -> None:
        candidates = [member for member in channel.members if member.present]
        if not candidates:
            return
        member = channel.speakers.choice(candidates)
        for _ in range(tail.messages):
            if member.sds is not None:
                content = self._content(channel)
                step = self._send(member, member.sds, content, now_ms)
                for broadcast in step.broadcasts:
                    self._lost_tails[broadcast.message_id] = tail
                self._follow(member, member.sds, step, now_ms)
        if tail.sender_leaves:
            member.gone = True
            self._leave(member, now_ms)

    def _send(
        self, member: Member, sds: MessageChannel, content: bytes, now_ms: int
    ) -> Step:
        # The id of a message decides who repairs the message, and when. If the id
        # depended on the start time, a simulation with another start time would have
        # other repairs.
        message_id = f"{member.channel.contents.getrandbits(256):064x}"
        reading_ms = member.clock.reading(now_ms)
        return sds.send(content, reading_ms, message_id=message_id)

    def _content(self, channel: Channel) -> bytes:
        traffic = channel.group.traffic
        least, most = traffic.payload_least_bytes, traffic.payload_most_bytes
        return channel.contents.randbytes(channel.contents.randint(least, most))

    # -- participants and the network

    def _follow(
        self, member: Member, sds: MessageChannel, step: Step, now_ms: int
    ) -> None:
        channel_id, participant = member.channel.channel_id, member.participant
        for event in step.events:
            self._log(Happening(now_ms, channel_id, participant, event))
        for broadcast in step.broadcasts:
            self._transmit(member, sds, broadcast, now_ms)
        if sds.next_deadline_ms < member.wake_reading_ms:
            self._plan_wake(member, sds, now_ms)

    def _transmit(
        self, member: Member, sds: MessageChannel, broadcast: Broadcast, now_ms: int
    ) -> None:
        channel = member.channel
        # All receivers share one decoded frame. `detached` replaces the containers of
        # protobuf with plain values.
        taken = decode(broadcast.value).detached()
        frame, value = taken, broadcast.value
        if broadcast.message_id in self._library_syncs:
            frame = taken._replace(kind=FrameKind.SYNC, content=b"")
            value = encode(frame)
        number = self._next_number()
        # The timestamp contains the number of the transmission, so that transmissions
        # of the same bytes have different Waku hashes.
        timestamp_ns = (
            member.clock.reading(now_ms) * _NANOSECONDS_PER_MS
            + number % _NANOSECONDS_PER_MS
        )
        hashed = message_hash(
            PUBSUB_TOPIC, value, channel.content_topic, META, timestamp_ns
        )
        transmission = Transmission(
            number,
            now_ms,
            channel.channel_id,
            member.participant,
            broadcast.cause,
            frame,
            value,
            f"0x{hashed.hex()}",
            timestamp_ns,
        )
        self._log(transmission)
        if broadcast.cause is Cause.CONTENT:
            sds.note_retrieval_hint(broadcast.message_id, hashed)
        elapsed_ms = now_ms - self._start_ms
        arrives, delays_ms = self._network.carry(
            member.index, channel.indices, elapsed_ms
        )
        lost_tail = self._lost_tails.get(broadcast.message_id)
        if lost_tail is None:
            arrives[member.position] = False
            positions = arrives.nonzero()[0]
            # The receivers are in descending order of arrival time. The next receiver
            # is the last one, because a list removes its last element fastest.
            positions = positions[delays_ms[positions].argsort(kind="stable")[::-1]]
            members = channel.members
            flight = Flight(
                transmission,
                taken,
                broadcast.value,
                hashed,
                [members[position] for position in positions.tolist()],
                (delays_ms[positions] + now_ms).tolist(),
            )
            if flight.times_ms:
                self._agenda.add(flight.times_ms[-1], partial(self._land, flight))
        if lost_tail is None or lost_tail.seen_by_taps:
            self._tell_taps(member.index, transmission, elapsed_ms)

    def _land(self, flight: Flight, now_ms: int) -> None:
        times_ms, receivers = flight.times_ms, flight.receivers
        while times_ms and times_ms[-1] == now_ms:
            times_ms.pop()
            self._receive(receivers.pop(), flight, now_ms)
        if times_ms:
            self._agenda.add(times_ms[-1], partial(self._land, flight))

    def _plan_wake(self, member: Member, sds: MessageChannel, now_ms: int) -> None:
        due_ms = max(now_ms + 1, member.clock.time_of(sds.next_deadline_ms))
        member.wake_ms = due_ms
        member.wake_reading_ms = member.clock.reading(due_ms)
        self._agenda.add(due_ms, partial(self._wake, member))

    def _wake(self, member: Member, now_ms: int) -> None:
        sds = member.sds
        # If `wake_ms` differs from `now_ms`, a wake-up that was planned later has
        # replaced this wake-up.
        if sds is None or not member.present or member.wake_ms != now_ms:
            return
        member.wake_ms = member.wake_reading_ms = NEVER_MS
        reading_ms = member.clock.reading(now_ms)
        if sds.next_deadline_ms <= reading_ms:
            self._follow(member, sds, sds.advance(reading_ms), now_ms)
        if member.wake_ms == NEVER_MS:
            self._plan_wake(member, sds, now_ms)


def _shared_out(shares: tuple[ProfileShare, ...], count: int) -> list[ProfileShare]:
    """Return `count` profiles; each profile occurs in proportion to its share."""
    total = sum(one.share for one in shares)
    shared: list[ProfileShare] = []
    sum_so_far = 0.0
    for one in shares:
        sum_so_far += one.share
        until = round(sum_so_far / total * count)
        shared += [one] * (until - len(shared))
    return shared


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * 1_000)
