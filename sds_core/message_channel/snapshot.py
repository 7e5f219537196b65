"""Encodes the state of a participant as bytes, and decodes it.

`sds_core.sealed` adds a version and a checksum to the bytes. Add fields only at the end
of a struct, with a default. Any other change of the structs needs a new version, and
all versions must stay readable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from math import inf
from random import Random
from typing import Final

import msgspec

from sds_core.message_channel.errors import SnapshotError
from sds_core.message_channel.incoming import IncomingBuffer, MissingDependency, Waiting
from sds_core.message_channel.outgoing import Outgoing, OutgoingBuffer
from sds_core.message_channel.parts import Parts, Uptime
from sds_core.message_channel.profile import LogOrder, Profile
from sds_core.message_channel.repairer import AnswersGiven
from sds_core.message_channel.retained import Retained
from sds_core.message_channel.sync import SyncTimer
from sds_core.sealed import Seal
from sds_core.wire import HistoryEntry, decode

VERSION = 1

FREE: Final = frozenset(
    {
        "after_request",
        "answer_bytes_per_sweep",
        "answers_per_sweep",
        "causal_history_size",
        "hint_limit",
        "history_limit",
        "id_limit",
        "incoming_bytes_limit",
        "incoming_limit",
        "log_limit",
        "lost_after_ms",
        "max_frame_bytes",
        "missing_limit",
        "outgoing_bytes_limit",
        "outgoing_limit",
        "participants_limit",
        "possible_acks_capped",
        "possible_acks_threshold",
        "repair",
        "repair_buffer_limit",
        "repair_retained_bytes_limit",
        "repair_retained_limit",
        "repair_retention_ms",
        "requests_taken_per_message",
    }
)
"""Profile options that may change at a restart.

The stored state must be within the limits that the new values set. The new values apply
after the stored changes were repeated.
"""


class OutgoingState(msgspec.Struct, array_like=True):
    """One entry of the outgoing buffer; `retry_ms` is None if no retry is planned.

    In snapshots of older versions, `filters` is None.
    """

    message_id: str
    value: bytes
    attempts: int
    sent_ms: int
    retry_ms: int | None
    is_possibly_acknowledged: bool
    seen_by: list[str]
    filters: int | None = None


class WaitingState(msgspec.Struct, array_like=True):
    """One entry of the incoming buffer."""

    message_id: str
    value: bytes
    retrieval_hint: bytes
    arrived_ms: int
    unmet: list[str]


class State(msgspec.Struct, array_like=True, kw_only=True):
    """The whole state of a participant; each list is in the order of its buffer.

    In snapshots of version 1.1.0 or earlier, `profile` is None.
    """

    channel_id: str
    participant_id: str
    started_ms: int
    lamport: int
    log_keys: list[tuple[int, str]]
    log_entries: list[HistoryEntry]
    log_order: LogOrder
    forgotten: list[str]
    bloom: tuple[bytes, list[str]]
    outgoing: list[OutgoingState]
    waiting: list[WaitingState]
    missing: list[MissingDependency]
    lost: list[str]
    circles_due_ms: int | None
    requests: list[tuple[HistoryEntry, int, int | None]]
    responses: dict[str, int]
    retained: dict[str, Retained]
    next_sync_ms: int
    participants: dict[str, int]
    answers_given: AnswersGiven = AnswersGiven(0, 0, 0)
    options: dict[str, str] = msgspec.field(default_factory=dict)
    changes: int = 0
    own_frame_ms: int | None = None
    last_ms: int | None = None
    owed_to: str = ""
    forgotten_lamports: list[int] | None = None
    horizon: tuple[int, str] | None = None
    received: int | None = None
    profile: Profile | None = None


SEAL = Seal(VERSION, State, SnapshotError)
"""Encodes a `State` as bytes, and decodes it."""


def state_of(parts: Parts) -> State:
    """Return the state of a participant in the form that a snapshot stores."""
    incoming, repairer = parts.incoming, parts.repairer
    return State(
        channel_id=parts.channel_id,
        participant_id=parts.participant_id,
        started_ms=parts.started_ms,
        lamport=parts.lamport.value,
        log_keys=parts.log.keys(),
        log_entries=list(parts.log.entries.values()),
        log_order=parts.profile.log_order,
        forgotten=list(parts.log.forgotten),
        bloom=parts.bloom.state(),
        outgoing=_outgoing_state(parts.outgoing),
        waiting=_waiting_state(incoming),
        missing=list(incoming.missing.values()),
        lost=list(incoming.lost),
        circles_due_ms=_time_or_none(incoming.circles_due_ms),
        requests=repairer.requests.state(),
        responses=repairer.responses.state(),
        retained=repairer.retained.state(),
        next_sync_ms=parts.sync.next_ms,
        participants=repairer.participants.state(),
        answers_given=repairer.budget.given,
        options=options_of(parts.profile),
        changes=parts.changes.number,
        own_frame_ms=parts.sync.own_frame_ms,
        last_ms=parts.uptime.last_ms,
        owed_to=parts.sync.owed_to,
        forgotten_lamports=list(parts.log.forgotten.values()),
        horizon=parts.log.horizon,
        received=incoming.received,
        profile=parts.profile,
    )


def restored(state: State, profile: Profile, random: Random) -> Parts:
    """Return the parts of a participant, restored from the state in a snapshot.

    Call `check_fit` first, because the state must fit the profile.

    Raises:
        WireError: A stored filter or message is invalid.
    """
    # Snapshots of older versions lack `own_frame_ms` and `last_ms`.
    own_frame_ms = state.own_frame_ms or state.started_ms
    sync = SyncTimer(profile, random, state.next_sync_ms, own_frame_ms, state.owed_to)
    parts = Parts.empty(
        state.channel_id,
        state.participant_id,
        profile,
        state.started_ms,
        sync,
        Uptime(state.last_ms),
    )
    parts.lamport.value = state.lamport
    parts.log.restore(
        state.log_keys,
        state.log_entries,
        state.forgotten,
        state.forgotten_lamports,
        state.horizon,
    )
    parts.bloom.restore(*state.bloom)
    parts.outgoing.restore(_outgoing_messages(state))
    parts.incoming.restore(
        _waiting_messages(state),
        state.missing,
        state.lost,
        inf if state.circles_due_ms is None else state.circles_due_ms,
    )
    parts.incoming.received = _received(state)
    repairer = parts.repairer
    repairer.requests.restore(state.requests)
    repairer.responses.restore(state.responses)
    repairer.retained.restore(state.retained)
    repairer.participants.restore(state.participants)
    repairer.budget.given = state.answers_given
    parts.changes.number = state.changes
    return parts


def adapted(state: State, before: Profile, after: Profile) -> State:
    """Return a state that was reached under `before`, as it continues under `after`."""
    if after.lost_after_ms != before.lost_after_ms:
        # The next sweep is due immediately, and computes this time again.
        state = msgspec.structs.replace(state, circles_due_ms=state.last_ms)
    if not after.repair:
        state = msgspec.structs.replace(state, requests=[], responses={}, retained={})
    return state


def moved(state: State, by_ms: int) -> State:
    """Return a state whose times are later by `by_ms`, which may be negative.

    `last_ms` does not change, because each call sets it.
    """

    def move(time_ms: int | None) -> int | None:
        return None if time_ms is None else time_ms + by_ms

    replace = msgspec.structs.replace
    return replace(
        state,
        started_ms=state.started_ms + by_ms,
        outgoing=[
            replace(one, sent_ms=one.sent_ms + by_ms, retry_ms=move(one.retry_ms))
            for one in state.outgoing
        ],
        waiting=[
            replace(one, arrived_ms=one.arrived_ms + by_ms) for one in state.waiting
        ],
        missing=[one._replace(since_ms=one.since_ms + by_ms) for one in state.missing],
        circles_due_ms=move(state.circles_due_ms),
        requests=[
            (entry, t_req_ms + by_ms, move(held_until_ms))
            for entry, t_req_ms, held_until_ms in state.requests
        ],
        responses={
            message_id: t_resp_ms + by_ms
            for message_id, t_resp_ms in state.responses.items()
        },
        retained={
            message_id: stored._replace(stored_ms=stored.stored_ms + by_ms)
            for message_id, stored in state.retained.items()
        },
        next_sync_ms=state.next_sync_ms + by_ms,
        participants={
            sender_id: last_frame_ms + by_ms
            for sender_id, last_frame_ms in state.participants.items()
        },
        own_frame_ms=move(state.own_frame_ms),
    )


def _received(state: State) -> int:
    """Return the number of messages that the participant received.

    Snapshots of version 0.14 or earlier do not contain this number, so the result for
    them is a lower bound.
    """
    if state.received is not None:
        return state.received
    others = sum(one.sender_id != state.participant_id for one in state.log_entries)
    return others + len(state.waiting)


def _time_or_none(time_ms: float) -> int | None:
    return None if time_ms == inf else int(time_ms)


def _outgoing_state(buffer: OutgoingBuffer) -> list[OutgoingState]:
    return [
        OutgoingState(
            message_id,
            message.value,
            message.attempts,
            message.sent_ms,
            _time_or_none(message.retry_ms),
            message.is_possibly_acknowledged,
            sorted(message.seen_by),
            message.filters,
        )
        for message_id, message in buffer.messages.items()
    ]


def _outgoing_messages(state: State) -> dict[str, Outgoing]:
    return {
        one.message_id: Outgoing(
            one.value,
            one.sent_ms,
            inf if one.retry_ms is None else one.retry_ms,
            one.attempts,
            one.is_possibly_acknowledged,
            set(one.seen_by),
            len(one.seen_by) if one.filters is None else one.filters,
        )
        for one in state.outgoing
    }


def _waiting_state(buffer: IncomingBuffer) -> list[WaitingState]:
    return [
        WaitingState(
            message_id,
            message.value,
            message.retrieval_hint,
            message.arrived_ms,
            sorted(message.unmet),
        )
        for message_id, message in buffer.waiting.items()
    ]


def _waiting_messages(state: State) -> Iterator[tuple[str, Waiting]]:
    for one in state.waiting:
        frame, unmet = decode(one.value), set(one.unmet)
        message = Waiting(frame, one.value, one.retrieval_hint, one.arrived_ms, unmet)
        yield one.message_id, message


def check_fit(state: State, profile: Profile) -> None:
    """Check that a stored state fits the profile of the restored participant.

    Raises:
        SnapshotError: An option that must not change differs, or the state exceeds a
            limit of the profile.
    """
    if state.log_order is not profile.log_order:
        detail = (
            f"the snapshot has log_order = {state.log_order}, but the profile has "
            f"{profile.log_order}"
        )
        raise SnapshotError(detail)
    for option, ours in options_of(profile).items():
        # Snapshots of version 0.9.0 contain no options.
        theirs = state.options.get(option, ours)
        if theirs != ours:
            detail = f"the snapshot has {option} = {theirs}, but the profile has {ours}"
            raise SnapshotError(detail)
    for option, size in _needed(state).items():
        limit = getattr(profile, option)
        if size > limit:
            detail = (
                f"the snapshot needs {option} >= {size}, but the profile has {limit}"
            )
            raise SnapshotError(detail)


def _needed(state: State) -> dict[str, int]:
    entries = [
        *state.log_entries,
        *(missing.entry for missing in state.missing),
        *(entry for entry, _, _ in state.requests),
    ]
    hints = [entry.retrieval_hint for entry in entries]
    hints += [hint for missing in state.missing for hint in missing.older_hints]
    ids = [state.channel_id, state.participant_id]
    ids += [name for entry in entries for name in (entry.message_id, entry.sender_id)]
    outgoing = [len(message.value) for message in state.outgoing]
    waiting = [len(message.value) for message in state.waiting]
    retained = [len(message.value) for message in state.retained.values()]
    return {
        "log_limit": len(state.log_keys),
        "outgoing_limit": len(state.outgoing),
        "outgoing_bytes_limit": sum(outgoing),
        "incoming_limit": len(state.waiting),
        "incoming_bytes_limit": sum(waiting),
        "missing_limit": max(len(state.missing), len(state.lost)),
        "max_frame_bytes": max([*outgoing, *waiting, *retained], default=0),
        "repair_buffer_limit": max(len(state.requests), len(state.responses)),
        "repair_retained_limit": len(state.retained),
        "repair_retained_bytes_limit": sum(retained),
        "participants_limit": len(state.participants),
        "id_limit": max(map(len, ids)),
        "hint_limit": max(map(len, hints), default=0),
    }


def options_of(profile: Profile) -> dict[str, str]:
    """Return the values, as text, of the options that must not change at a restart."""
    names = (field.name for field in fields(Profile))
    return {name: str(getattr(profile, name)) for name in names if name not in FREE}
