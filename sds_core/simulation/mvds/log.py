"""The log of a simulation of MVDS: everything that happens, as values.

Times are Unix ms by the simulation's clock, unless an attribute names another clock.
"""

from __future__ import annotations

from typing import NamedTuple

from sds_core.mvds.payload import Payload
from sds_core.simulation.log import Heartbeat, TapGap


class Made(NamedTuple):
    """A node made a message."""

    at_ms: int
    node: str
    message_id: bytes
    group_id: bytes


class Sending(NamedTuple):
    """A node sent a payload to a peer; nodes are given by hexadecimal ids.

    `number` counts the sendings of a simulation from 0.
    """

    number: int
    at_ms: int
    sender: str
    receiver: str
    payload: Payload
    value: bytes


class Reached(NamedTuple):
    """A message reached a node that did not know it."""

    at_ms: int
    node: str
    message_id: bytes


class AckArrived(NamedTuple):
    """An acknowledgement by a node reached a peer that was waiting for it."""

    at_ms: int
    node: str
    message_id: bytes


class PayloadSighting(NamedTuple):
    """A tap recorded a payload; later records of the sending are replicas."""

    at_ms: int
    tap: str
    seq: int
    sending: Sending


MvdsEntry = Made | Sending | Reached | AckArrived | PayloadSighting | Heartbeat | TapGap
