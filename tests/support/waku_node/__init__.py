"""A Waku node for tests: the REST API of logos-delivery over real HTTP, with faults.

It behaves as that node does where a mirror can notice: pages that are cleared when they
are read, a cache of all topics that overflows silently, subscriptions that a restart
forgets, a store that takes neither ephemeral messages nor those of bad clocks. And it
keeps a log of what became of each message, for whoever judges a mirror.

Sources: logos-delivery rest_api/message_cache.nim, rest_api/endpoint/{relay,filter,
store}/handlers.nim, waku_archive/archive.nim.
"""

from tests.support.waku_node.faults import NO_FAULT, Fault
from tests.support.waku_node.log import Call, Cause, Dropped, Endpoint, HandedOut, Offer
from tests.support.waku_node.node import ConformanceNode

__all__ = [
    "NO_FAULT",
    "Call",
    "Cause",
    "ConformanceNode",
    "Dropped",
    "Endpoint",
    "Fault",
    "HandedOut",
    "Offer",
]
