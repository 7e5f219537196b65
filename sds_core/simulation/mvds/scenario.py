"""A scenario of MVDS: all settings of a simulation except its seed and its start.

Units are those of `sds_core.simulation.scenario`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from sds_core.mvds.options import Mode
from sds_core.reading import TableError, read
from sds_core.simulation.scenario import BaseScenario, Count, Payload, PositiveSeconds


class MvdsScenario(BaseScenario, frozen=True, kw_only=True):
    """Settings of a simulation of MVDS.

    Attributes:
        protocol: Always `mvds`. A file without this key is a scenario of SDS.
        nodes: Number of nodes. Every node is in every group.
        senders: Number of nodes that create messages, counted from the first node.
        groups: Number of groups.
        interval_s: Mean time between two messages of a sender in a group. The times are
            exponentially distributed.
        payload_bytes: Length of each message's body, bytes.
        mode: Whether a node sends its own messages at once, or offers them first.
        backoff: Times that a node waits before it sends a record again. `document`: 2,
            4, 8, ..., 128, 2, ... epochs. `linear`: 2, 4, 6, ... epochs, as in the
            upstream simulation. `deployed`: the times of status-go.
        epoch_ms: Length of an epoch. Nodes begin their epochs at different times.
        forward: Whether a node offers received messages to the other nodes.
    """

    protocol: Literal["mvds"]
    nodes: Annotated[int, Meta(ge=2, le=200)]
    senders: Count = 1
    groups: Annotated[int, Meta(ge=1, le=100)] = 1
    interval_s: PositiveSeconds
    payload_bytes: Payload = 100
    mode: Mode = Mode.INTERACTIVE
    backoff: Literal["document", "linear", "deployed"] = "document"
    epoch_ms: Annotated[int, Meta(ge=100, le=3_600_000)] = 1_000
    forward: bool = True

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> MvdsScenario:
        """Read a scenario.

        Raises:
            TableError: The mapping is not a scenario. The error has position, value and
                allowed values.
        """
        scenario = read(mapping, cls)
        most = scenario.nodes
        # Each node's epochs begin at a different millisecond of `epoch_ms`.
        limits = [
            ("senders", scenario.senders, most),
            ("nodes", scenario.nodes, scenario.epoch_ms),
        ]
        limits += [
            (f"network.partitions[{place}].participants", cut.participants, most - 1)
            for place, cut in enumerate(scenario.network.partitions)
        ]
        for path, count, limit in limits:
            if count > limit:
                raise TableError(path, f"is {count}, but the maximum is {limit}")
        names = [tap.name for tap in scenario.taps]
        if len(set(names)) < len(names):
            raise TableError("taps", "contain a name twice: give unique names")
        return scenario
