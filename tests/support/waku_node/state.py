"""What a node holds: caches, subscriptions, its store, planned faults and its log."""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Callable

from sds_core.waku import WakuMessage
from tests.support.waku_node.cache import FILTER_CAPACITY, Cache, Entry
from tests.support.waku_node.faults import Fault
from tests.support.waku_node.log import Call, Cause, Dropped, Endpoint, HandedOut, Offer
from tests.support.waku_node.store import Store

MAX_DRIFT_NS = 20_000_000_000
"""How far a sender's clock may be off for the store to keep a live message."""


class NodeState:
    """What reaches a node, and what becomes of it; usable from any thread.

    Args:
        relay_capacity: Messages in the relay cache.
        now_ns: The node's clock, Unix ns.
    """

    def __init__(self, relay_capacity: int, now_ns: Callable[[], int]) -> None:
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._is_up = False
        self._relay_capacity = relay_capacity
        self.forget()

    def forget(self) -> None:
        """Be as new: nothing subscribed, stored, logged or injected."""
        with self._lock:
            self._relay = Cache(self._relay_capacity)
            self._filter = Cache(FILTER_CAPACITY)
            self._relay_topics: set[str] = set()
            self._filter_topics: set[tuple[str, str]] = set()
            self._store = Store()
            self._faults: defaultdict[Endpoint, deque[Fault]] = defaultdict(deque)
            self._lasting_faults: dict[Endpoint, Fault] = {}
            self._offers: list[Offer] = []
            self._handed: list[HandedOut] = []
            self._dropped: list[Dropped] = []
            self._calls: list[Call] = []

    # What reaches it

    def offer(self, message: WakuMessage, *, pubsub_topic: str) -> bytes:
        """Bring a message to the node, as its neighbours do; returns the hash."""
        message_hash = message.hash_on(pubsub_topic)
        entry = Entry(message_hash, pubsub_topic, message)
        with self._lock:
            at_ns, up = self._now_ns(), self._is_up
            self._offers.append(Offer(at_ns, message_hash, pubsub_topic, message, up))
            if not up:
                return message_hash
            drift_ns = abs(at_ns - message.timestamp_ns)
            if not message.ephemeral and drift_ns <= MAX_DRIFT_NS:
                self._store.put(entry)
            wanted = {
                Endpoint.RELAY: pubsub_topic in self._relay_topics,
                Endpoint.FILTER: (pubsub_topic, message.content_topic)
                in self._filter_topics,
            }
            if not any(wanted.values()):
                self._drop(None, message_hash, Cause.UNSUBSCRIBED)
            for endpoint, cache in self._caches():
                evicted = cache.add(entry) if wanted[endpoint] else None
                if evicted is not None:
                    self._drop(endpoint, evicted.hash, Cause.OVERFLOW)
        return message_hash

    def store_late(self, message: WakuMessage, *, pubsub_topic: str) -> bytes:
        """Have the store learn a message by its sync with others; returns the hash."""
        message_hash = message.hash_on(pubsub_topic)
        with self._lock:
            self._store.put(Entry(message_hash, pubsub_topic, message))
        return message_hash

    # What goes wrong

    def inject(self, endpoint: Endpoint, fault: Fault, calls: int = 1) -> None:
        """Have the next calls of an endpoint go wrong, after those injected before."""
        with self._lock:
            self._faults[endpoint].extend([fault] * calls)

    def spoil(self, endpoint: Endpoint, fault: Fault) -> None:
        """Have every call go wrong for which nothing else is injected."""
        with self._lock:
            self._lasting_faults[endpoint] = fault

    def heal(self) -> None:
        """Have everything go well from now on."""
        with self._lock:
            self._faults.clear()
            self._lasting_faults.clear()

    # For judges

    @property
    def offers(self) -> list[Offer]:
        """Everything that `offer` was given, in order."""
        with self._lock:
            return self._offers.copy()

    @property
    def handed_out(self) -> list[HandedOut]:
        """Every message of every answer that was sent, in order; no bare hashes."""
        with self._lock:
            return self._handed.copy()

    @property
    def dropped(self) -> list[Dropped]:
        """Everything that a cache lost unread, in order."""
        with self._lock:
            return self._dropped.copy()

    @property
    def calls(self) -> list[Call]:
        """Every request, in order."""
        with self._lock:
            return self._calls.copy()

    @property
    def stored(self) -> dict[bytes, WakuMessage]:
        """What stands in the store, by hash."""
        with self._lock:
            return self._store.messages()

    @property
    def relay_backlog(self) -> int:
        """How many messages wait in the relay cache."""
        with self._lock:
            return sum(1 for _ in self._relay)

    def offered_to_anyone(self) -> set[bytes]:
        """Hashes of what a perfect mirror has or can still get.

        These were handed out, or stand in a cache or in the store.
        """
        with self._lock:
            cached = {one.hash for _, cache in self._caches() for one in cache}
            handed = {one.hash for one in self._handed}
            return handed | cached | self._store.messages().keys()

    def only_in_pages(self) -> set[bytes]:
        """Hashes of what a cleared page held and the store does not: once is all."""
        with self._lock:
            handed = {
                one.hash for one in self._handed if one.endpoint is not Endpoint.STORE
            }
            return handed - self._store.messages().keys()

    def lost(self) -> set[bytes]:
        """Hashes of what reached the node and nobody can get any more."""
        obtainable = self.offered_to_anyone()
        return {one.hash for one in self.dropped} - obtainable

    def _note_taken(
        self, endpoint: Endpoint, at_ns: int, taken: list[Entry], sent: list[Entry]
    ) -> None:
        arrived = {one.hash for one in sent}
        with self._lock:
            self._handed.extend(HandedOut(at_ns, endpoint, one.hash) for one in sent)
            for one in taken:
                if one.hash not in arrived:
                    self._dropped.append(
                        Dropped(at_ns, endpoint, one.hash, Cause.ANSWER)
                    )

    def _caches(self) -> list[tuple[Endpoint, Cache]]:
        return [(Endpoint.RELAY, self._relay), (Endpoint.FILTER, self._filter)]

    def _drop(self, endpoint: Endpoint | None, message_hash: bytes, why: Cause) -> None:
        self._dropped.append(Dropped(self._now_ns(), endpoint, message_hash, why))
