"""A scenario of MVDS: all settings of a simulation except its seed and its start.

The docstring of `sds_core.simulation.scenario` explains the units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta

from sds_core.mvds.options import Mode
from sds_core.reading import TableError, read
from sds_core.simulation.scenario import BaseScenario, Count, PositiveSeconds

# Nodes have the default options, so a message may take 64 KiB
# (`Options.max_message_bytes`). Group id, timestamp and framing take 56 bytes of them.
_BodyBytes = Annotated[int, Meta(ge=1, le=65_480)]


class MvdsScenario(BaseScenario, frozen=True, kw_only=True):
    """Settings of a simulation of MVDS.

    Attributes:
        protocol: Always `mvds`. A file without this key is a scenario of SDS.
        nodes: Number of nodes. Every node is in every group.
        senders: Number of nodes that create messages. These are the first nodes; the
            other nodes create none.
        groups: Number of groups.
        interval_s: Mean time between two messages that a sender creates in the same
            group. The times are exponentially distributed.
        payload_bytes: Length of each message's body, bytes.
        mode: `batch`: a node sends its own messages immediately. `interactive`: a node
            first offers its own messages.
        backoff: How long a node waits after each sending of a record before it sends
            the record again. `document`: 2, 4, 8, ..., 128, 2, ... epochs. `linear`: 2,
            4, 6, ... epochs, as in the simulation of vacp2p/mvds. `deployed`: the
            number of epochs that status-go waits.
        epoch_ms: Length of an epoch. The epochs of different nodes begin at different
            times.
        forward: Whether a node offers received messages to the other nodes.
    """

    protocol: Literal["mvds"]
    nodes: Annotated[int, Meta(ge=2, le=200)]
    senders: Count = 1
    groups: Annotated[int, Meta(ge=1, le=100)] = 1
    interval_s: PositiveSeconds
    payload_bytes: _BodyBytes = 100
    mode: Mode = Mode.INTERACTIVE
    backoff: Literal["document", "linear", "deployed"] = "document"
    epoch_ms: Annotated[int, Meta(ge=100, le=3_600_000)] = 1_000
    forward: bool = True

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> MvdsScenario:
        """Read a scenario.

        Raises:
            TableError: The mapping is not a valid scenario. The error names the invalid
                value, its position in the mapping, and the allowed values.
        """
        scenario = read(mapping, cls)
        most = scenario.nodes
        # The maximum number of nodes is `epoch_ms`, because the epochs of each node
        # begin at another millisecond.
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
        for name, count in Counter(tap.name for tap in scenario.taps).items():
            if count > 1:
                problem = f"contain the name {name!r} twice: give unique names"
                raise TableError("taps", problem)
        return scenario
