"""Checks that run before a call or received frame changes a participant's state."""

from __future__ import annotations

from collections.abc import Sequence

from sds_core.message_channel.events import Ignored, IgnoredReason
from sds_core.message_channel.lamport import LamportTimestamp
from sds_core.message_channel.profile import Profile
from sds_core.wire import Frame, FrameKind, HistoryEntryLike


def check_name(what: str, name: str, limit: int) -> None:
    """Check an id that the application passes.

    Raises:
        ValueError: The id is empty, too long, or not valid Unicode text.
    """
    if not 0 < len(name) <= limit:
        message = f"{what} has {len(name)} characters, but 1 to {limit} are allowed"
        raise ValueError(message)
    try:
        name.encode()
    except UnicodeEncodeError as error:
        message = f"{what} {name!r:.80} is not valid Unicode text: {error.reason}"
        raise ValueError(message) from error


def check_time(now_ms: int) -> None:
    """Check that a time is a whole number of milliseconds.

    Without this check, a participant would accept a fraction, and only a later
    `MessageChannel.restore` would fail.

    Raises:
        TypeError: The time is not an int.
    """
    if not isinstance(now_ms, int):
        message = f"now_ms is {now_ms!r}, but must be whole milliseconds: use int(…)"
        raise TypeError(message)


def size_refusal(value: bytes, profile: Profile) -> Ignored | None:
    """Return why a frame of this length is ignored; None if it is short enough."""
    limit = profile.max_frame_bytes
    if len(value) <= limit:
        return None
    detail = f"{len(value)} bytes, at most {limit}"
    return Ignored(IgnoredReason.TOO_LARGE, "", detail)


def refusal(
    frame: Frame,
    unknown: Sequence[HistoryEntryLike],
    now_ms: int,
    profile: Profile,
    lamport: LamportTimestamp,
) -> Ignored | None:
    """Return why a new content or sync frame is ignored; None if it is accepted.

    `unknown` contains the entries of the frame's causal history that the log lacks.
    """
    message_id = frame.message_id
    entries = len(frame.causal_history)
    if entries > profile.history_limit:
        detail = f"{entries} entries, at most {profile.history_limit}"
        return Ignored(IgnoredReason.HISTORY_TOO_LONG, message_id, detail)
    limit = profile.id_limit
    longest = max(len(message_id), len(frame.sender_id))
    for entry in (*unknown, *frame.repair_request):
        longest = max(longest, len(entry.message_id), len(entry.sender_id))
    if longest > limit:
        detail = f"{longest} characters, at most {limit}"
        return Ignored(IgnoredReason.ID_TOO_LONG, message_id[:limit], detail)
    # When a content message is delivered, its timestamp raises our timestamp. A sync
    # message needs no check here, because `LamportTimestamp.tick` has its own check.
    timestamp = frame.lamport or 0
    if frame.kind is FrameKind.CONTENT and timestamp > lamport.limit(now_ms):
        detail = f"lamport timestamp {timestamp}"
        return Ignored(IgnoredReason.FAR_FUTURE, message_id, detail)
    return None
