"""Decides whether a message may have been forgotten (docs/figures.md, 2, 6)."""

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
        seen_ms: The channel's clock at the newest first copy that was forgotten, Unix
            ms; 0 if none was.
        lamports: Highest forgotten Lamport timestamp of each participant, by index;
            senders without a name share the index `UNKNOWN`.
    """

    seen_ms: int = 0
    lamports: dict[int, int] = {}


@native
@dataclass(slots=True)
class ForgottenMessages:
    """Tracks the latest `seen_ms` and the highest timestamps of forgotten messages."""

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

    def may_have(self, sender: int, lamport: Uint64) -> bool:
        """Whether the sender's message with this timestamp may have been forgotten."""
        known = self._state.lamports.get(sender)
        return known is not None and lamport <= known

    def remembers_since(self, seen_ms: int) -> bool:
        """Whether all messages that were seen at or after `seen_ms` are remembered."""
        return seen_ms > self._state.seen_ms
