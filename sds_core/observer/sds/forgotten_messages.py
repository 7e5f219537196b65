"""Decides whether the monitor may have forgotten a message (docs/figures.md, 2, 6)."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from sds_core.native import Uint64, native
from sds_core.observer.rule_settings import RuleSettings
from sds_core.observer.sds.limits import LeftOut
from sds_core.observer.sds.totals import ChannelTotals


class ForgottenState(msgspec.Struct, array_like=True):
    """Encoded form of `ForgottenMessages`.

    Attributes:
        seen_ms: The channel's clock when the first copy of the newest forgotten message
            was seen, Unix ms; 0 if no message was forgotten.
        lamports: For each participant, by index, the highest Lamport timestamp of its
            forgotten messages. Senders without a name share the index `UNKNOWN`.
    """

    seen_ms: int = 0
    lamports: dict[int, int] = {}


@native
@dataclass(slots=True)
class ForgottenMessages:
    """Tracks up to which times and Lamport timestamps messages may be forgotten."""

    _settings: RuleSettings
    _totals: ChannelTotals
    _state: ForgottenState

    def add(self, seen_ms: int, sender: int, lamport: Uint64) -> None:
        """Record that a message is forgotten."""
        state = self._state
        state.seen_ms = max(state.seen_ms, seen_ms)
        known = state.lamports.get(sender)
        if known is None and len(state.lamports) >= self._settings.followed:
            self._totals.leave_out(LeftOut.PARTICIPANT)
            return
        state.lamports[sender] = max(lamport, known or 0)

    def may_leave_out(self, participants: int) -> bool:
        """Whether `add` may omit a message, given the number of participants."""
        # Senders without a name count as one further participant.
        return participants >= self._settings.followed

    def may_have(self, sender: int, lamport: Uint64) -> bool:
        """Whether a sender's message with this Lamport timestamp may be forgotten."""
        known = self._state.lamports.get(sender)
        return known is not None and lamport <= known

    def remembers_since(self, seen_ms: int) -> bool:
        """Whether all messages that were seen at or after `seen_ms` are remembered."""
        return seen_ms > self._state.seen_ms
