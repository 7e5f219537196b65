"""What really happened in a simulation, and the report that a correct monitor gives.

The figures have the names of the report. They are counted from the simulation's own
knowledge: which transmission each record shows, and what each participant had received
when it composed a frame. No bloom filter is read. History and requests come from the
decoded frame, so an error in `sds_core.wire` would not show here. The code prefers
plain scans over whole lists to clever state. It imports nothing of the observer.
"""

from sds_core.simulation.truth.truth import Truth

__all__ = ["Truth"]
