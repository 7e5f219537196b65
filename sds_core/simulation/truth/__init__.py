"""The truth of a simulation: its events, and the report of a correct monitor.

The figures have the names of the report. They are counted from the simulation's own
knowledge: which transmission each record shows, and what each participant had received
when it composed a frame. No bloom filter is read. History and requests come from the
decoded frame, so an error in `sds_core.wire` would not show here. The code prefers
simple scans of whole lists to complex state. It imports nothing from the observer.
"""

from sds_core.simulation.truth.truth import Truth as Truth
