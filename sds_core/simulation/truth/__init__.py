"""Ground truth of a simulation: what happened, and what a correct monitor reports.

The figures have the same names as in a monitor's report. This package counts the
figures from facts that no monitor knows. For each record, the package knows the
transmission. For each frame, the package knows which messages the sender had received
before it composed the frame. The package reads no bloom filter. It takes causal
histories and repair requests from decoded frames, so a comparison of a report with the
truth cannot reveal errors of `sds_core.wire`. To stay simple, the package scans whole
lists. To stay independent of the monitor, the package imports nothing from
`sds_core.observer`.
"""

from sds_core.simulation.truth.truth import Truth as Truth
