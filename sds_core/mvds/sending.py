"""Makes the payloads of one epoch.

Source: 2/MVDS, "Flow" and "Retransmission".
"""

from __future__ import annotations

from dataclasses import replace

from sds_core.mvds.events import Event
from sds_core.mvds.packing import Packer
from sds_core.mvds.payload import Payload
from sds_core.mvds.records import Record, RecordType
from sds_core.mvds.state import NodeState


def payloads_of_epoch(state: NodeState, events: list[Event]) -> dict[bytes, Payload]:
    """Return one payload for each peer for whom there are records, and count them sent.

    What does not fit into a payload is sent in the next epoch.
    """
    payloads = {}
    due = state.records.take_due(state.epoch)
    for peer in dict.fromkeys([*state.outbox.peers(), *due]):
        packer = Packer(state.options.max_payload_bytes)
        state.outbox.pack(peer, packer)
        for record in due.get(peer, ()):
            _send(state, record, packer, events)
        payload = packer.payload()
        if payload != Payload():
            payloads[peer] = payload
    return payloads


def _send(
    state: NodeState, record: Record, packer: Packer, events: list[Event]
) -> None:
    """Put a due record into a payload, or give it up, or leave it for the next."""
    limit = state.options.max_sends
    if limit is not None and record.send_count >= limit:
        state.give_up(record, events)
        return
    if not _pack(state, record, packer):
        state.records.put_back(record)
        return
    count = record.send_count + 1
    # A later one in any case, whatever the function returns.
    epoch = max(state.epoch + 1, state.options.backoff(count, state.epoch))
    state.records.put(replace(record, send_count=count, send_epoch=epoch))


def _pack(state: NodeState, record: Record, packer: Packer) -> bool:
    if record.type is RecordType.OFFER:
        return packer.offer(record.message_id)
    if record.type is RecordType.REQUEST:
        return packer.request(record.message_id)
    message = state.store.message(record.message_id)
    # A message leaves the store together with its records.
    assert message is not None  # noqa: S101
    return packer.message(message)
