"""The traffic of a run: more kinds of trouble than most channels see in a year."""

from __future__ import annotations

from sds_core.simulation.mvds.scenario import MvdsScenario
from sds_core.simulation.scenario import Network, Scenario, Tap

LONGEST_S = 6 * 3_600
_GIVES_UP = {"max_retries": 0, "repair": False, "lost_after_ms": 60_000}


def scenario() -> Scenario:
    """About ten frames a second, most of which have a filter of full size."""
    calm = {"mean_interval_s": 3.0, "ephemeral_share": 0.1}
    return Scenario.from_mapping(
        {
            "name": "chaos",
            "description": "repaired and unrepaired losses in both dialects",
            "duration_s": LONGEST_S,
            "participants": 12,
            "channels": [
                {"name": "repaired", "count": 4, "participants": 5, "traffic": calm},
                {
                    "name": "unrepaired",
                    "count": 3,
                    "participants": 4,
                    "traffic": calm,
                    "profiles": [{"overrides": _GIVES_UP}],
                },
                {
                    "name": "nim",
                    "count": 4,
                    "participants": 5,
                    "traffic": {"mean_interval_s": 1.0},
                    "profiles": [{"base": "nim_sds"}],
                },
            ],
            "network": {"loss": 0.08},
            # Everything that the network carries comes to the node.
            "taps": [{"name": "node", "loss": 0.0}],
        }
    )


def groups() -> MvdsScenario:
    """About five payloads a second in three groups."""
    return MvdsScenario(
        protocol="mvds",
        name="chaos-groups",
        description="three groups with losses",
        duration_s=float(LONGEST_S),
        nodes=4,
        senders=2,
        groups=3,
        interval_s=10.0,
        network=Network(loss=0.08),
        taps=(Tap(name="groups"),),
    )
