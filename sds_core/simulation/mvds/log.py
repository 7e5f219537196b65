"""The log of a simulation of MVDS: everything that happens, as values.

Times are Unix ms according to the simulation's clock, unless an attribute names another
clock.
"""

from __future__ import annotations

from typing import NamedTuple

from sds_core.mvds.payload import Payload
from sds_core.simulation.log import Heartbeat, TapGap


class Made(NamedTuple):
    """A node created a message."""

    at_ms: int
    node: str
    message_id: bytes
    group_id: bytes


class Sending(NamedTuple):
    """A node sent a payload to a peer. Node and peer are hexadecimal ids.

    `number` is the index of the sending in the simulation, from 0.
    """

    number: int
    at_ms: int
    sender: str
    receiver: str
    payload: Payload
    value: bytes


class Reached(NamedTuple):
    """A message reached a node that did not have it yet."""

    at_ms: int
    node: str
    message_id: bytes


class AckArrived(NamedTuple):
    """A node's acknowledgement reached a peer that was waiting for it."""

    at_ms: int
    node: str
    message_id: bytes


class PayloadSighting(NamedTuple):
    """A tap recorded a sent payload. Later records of the same sending are replicas."""

    at_ms: int
    tap: str
    seq: int
    sending: Sending


MvdsEntry = Made | Sending | Reached | AckArrived | PayloadSighting | Heartbeat | TapGap
