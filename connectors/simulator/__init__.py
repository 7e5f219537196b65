"""The simulator's doors: scenario files in, Kafka records out.

The simulation itself is `sds_core.simulation`.
"""
