"""Whether a snapshot fits the profile that continues it."""

from __future__ import annotations

from sds_core.message_channel.errors import SnapshotError
from sds_core.message_channel.options import options_of
from sds_core.message_channel.profile import Profile
from sds_core.message_channel.snapshot import State


def check_fit(state: State, profile: Profile) -> None:
    """Check that a state fits the profile that continues it.

    Its times, ids and filters have a meaning only under the options that it was made
    with. Limits may change if what is stored stays below them.

    Raises:
        SnapshotError: an option is another one, or something is over a limit.
    """
    if state.log_order is not profile.log_order:
        detail = f"its log is ordered by {state.log_order}, not by {profile.log_order}"
        raise SnapshotError(detail)
    for option, ours in options_of(profile).items():
        # Snapshots of 0.9.0 name no options.
        theirs = state.options.get(option, ours)
        if theirs != ours:
            detail = f"it was taken with {option} = {theirs}, the profile has {ours}"
            raise SnapshotError(detail)
    for option, size in _needed(state).items():
        limit = getattr(profile, option)
        if size > limit:
            detail = f"it needs {option} = {size}, the profile has {limit}"
            raise SnapshotError(detail)


def _needed(state: State) -> dict[str, int]:
    """Return the least value of each limit on what is stored."""
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
