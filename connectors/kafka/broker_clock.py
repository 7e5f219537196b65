"""Asks Kafka for its time, without writing anything.

No answer to a client that only reads topics has the time of a broker. The state of the
metadata quorum has it: for the active controller, "last fetch" is the moment at which
it answers (KIP-836; `LeaderState.describeReplicaState` in apache/kafka). Any broker
passes the request on. It takes Kafka 3.3 or newer with KRaft, and a user with the right
to describe the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafka import KafkaAdminClient
from kafka.errors import KafkaError


def controller_time_ms(admin: KafkaAdminClient) -> int | None:
    """Return the time of the cluster's active controller, Unix ms.

    Returns:
        None if the cluster does not tell: it is older, has ZooKeeper, refuses this
        user, or has no active controller at this moment.

    Raises:
        KafkaError: No broker answered.
    """
    try:
        answer = admin.describe_metadata_quorum()
    except KafkaError as error:
        if error.retriable:
            raise
        return None
    return max(_leader_times(answer), default=None)


def _leader_times(answer: Mapping[str, Any]) -> Iterator[int]:
    for topic in answer["topics"]:
        for partition in topic["partitions"]:
            # A leader that is about to be removed is an observer.
            for replica in partition["current_voters"] + partition["observers"]:
                time_ms = replica["last_fetch_timestamp"]
                if replica["replica_id"] == partition["leader_id"] and time_ms > 0:
                    yield time_ms
