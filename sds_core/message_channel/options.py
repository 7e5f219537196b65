"""Which options of a profile give a stored state its meaning."""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from sds_core.message_channel.profile import Profile

FREE: Final = frozenset(
    {
        "after_request",
        "answer_bytes_per_sweep",
        "answers_per_sweep",
        "hint_limit",
        "history_limit",
        "id_limit",
        "incoming_bytes_limit",
        "incoming_limit",
        "log_limit",
        "max_frame_bytes",
        "missing_limit",
        "outgoing_bytes_limit",
        "outgoing_limit",
        "participants_limit",
        "possible_acks_capped",
        "repair_buffer_limit",
        "repair_retained_bytes_limit",
        "repair_retained_limit",
        "repair_retention_ms",
        "requests_taken_per_message",
    }
)
"""Options that may change from one run to the next, as long as the state fits.

All limits, and how long and whether something that is stored is still used.
"""


def options_of(profile: Profile) -> dict[str, str]:
    """Return the options that may not change as text, for a snapshot."""
    names = (field.name for field in fields(Profile))
    return {name: str(getattr(profile, name)) for name in names if name not in FREE}
