"""Ground truth of a simulation: its events, and the report of a correct monitor.

The figures have the same names as in the report. This package counts the figures from
what only the simulation knows: which transmission each record shows, and which messages
each participant had received before it composed a frame. The package reads no bloom
filter. History and requests come from the decoded frame, so the truth cannot reveal
errors of `sds_core.wire`. To stay simple and independent, the package scans whole
lists, and imports nothing from `sds_core.observer`.
"""

from sds_core.simulation.truth.truth import Truth as Truth
