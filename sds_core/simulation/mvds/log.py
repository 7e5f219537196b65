"""Entries of the log of a simulation of MVDS. Each describes something that happened.

Times are Unix ms. The times of a tap's entries are according to the tap's clock, and
all other times according to the simulation's clock.
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
    """A node sent a payload to a peer.

    `sender` and `receiver` are the hexadecimal ids of node and peer. `number` counts
    the sendings of the simulation, from 0.
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
    """An acknowledgement that `node` sent reached a peer that was waiting for it."""

    at_ms: int
    node: str
    message_id: bytes


class PayloadSighting(NamedTuple):
    """A tap recorded a sent payload.

    If several records, also of different taps, have the same `sending`, all but the
    first are replicas.
    """

    at_ms: int
    tap: str
    seq: int
    sending: Sending


MvdsEntry = Made | Sending | Reached | AckArrived | PayloadSighting | Heartbeat | TapGap
