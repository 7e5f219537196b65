"""The truth of a simulation: its events, and the report of a correct monitor.

The figures have the names of the report. The simulation counts the figures from its own
knowledge: which transmission each record shows, and which messages each participant had
received before composing a frame. No bloom filter is read. History and requests come
from the decoded frame, so the truth cannot reveal errors of `sds_core.wire`. The code
scans whole lists instead of keeping complex state, and imports nothing from the
observer.
"""

from sds_core.simulation.truth.truth import Truth as Truth
