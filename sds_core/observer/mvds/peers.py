"""Remembers the names of peers, and when each peer last sent a payload."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from sds_core.native import native, uint64
from sds_core.observer.mvds.digest import HEARD_STEP_MS
from sds_core.observer.rule_settings import RuleSettings


class PeersState(msgspec.Struct, array_like=True):
    """Encoded form of `Peers`.

    Attributes:
        heard: Clock at each peer's latest payload, rounded down to seconds, Unix ms.
            The key is the fingerprint of the peer's id; entries are in order of these
            clocks.
        names: Clock at the latest MESSAGE that each peer sent or was sent, Unix ms, and
            the peer's name. The key is the fingerprint of the peer's id; entries are in
            order of these clocks.
    """

    heard: dict[int, int] = {}
    names: dict[int, tuple[int, str]] = {}


@native
class Peers:
    """Names of peers, and when each peer last sent a payload; see `PeersState`."""

    evicted: int
    _limit: int
    _heard: OrderedDict[int, int]
    _names: OrderedDict[int, tuple[int, str]]

    def __init__(self, settings: RuleSettings, state: PeersState) -> None:
        self._limit = settings.remembered
        self._heard = OrderedDict(state.heard)
        self._names = OrderedDict(state.names)
        self.evicted = 0

    def heard(self, peer: int, clock_ms: int) -> None:
        """Record that a peer sent a payload."""
        second_ms: int = clock_ms // HEARD_STEP_MS * HEARD_STEP_MS
        self._heard[peer] = max(second_ms, self._heard.pop(peer, second_ms))
        if len(self._heard) > self._limit:
            self._heard.popitem(last=False)
            self.evicted += 1

    def was_heard_since(self, peer: int, time_ms: int) -> bool:
        """Whether a peer sent a payload at or after `time_ms`, Unix ms of the clock.

        The time of the payload is rounded down to the second; `time_ms` is not.
        """
        second_ms = self._heard.get(peer)
        return second_ms is not None and second_ms >= time_ms

    def remember_name(self, peer: int, name: str, clock_ms: int) -> None:
        """Remember a peer's name, because an incident may have to name the peer."""
        self._names.pop(peer, None)
        self._names[peer] = clock_ms, name
        if len(self._names) > self._limit:
            self._names.popitem(last=False)
            self.evicted += 1

    def name(self, peer: int) -> str:
        """Name of a peer; if the name is forgotten, the fingerprint in hexadecimal."""
        known = self._names.get(peer)
        return f"{uint64(peer):016x}" if known is None else known[1]

    def forget_before(self, heard_ms: int, named_ms: int) -> None:
        """Drop the times of peers and the names that are too old.

        Args:
            heard_ms: Drop peers whose latest payload is before this clock, Unix ms.
            named_ms: Drop names whose latest MESSAGE is before this clock, Unix ms.
        """
        for peer in [one for one, ms in self._heard.items() if ms < heard_ms]:
            del self._heard[peer]
        for peer in [one for one, (ms, _) in self._names.items() if ms < named_ms]:
            del self._names[peer]

    def state(self) -> PeersState:
        """The encoded form."""
        return PeersState(dict(self._heard), dict(self._names))
