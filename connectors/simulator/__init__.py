"""Reads scenario files and turns a simulation into Kafka records.

The simulation itself is `sds_core.simulation`.
"""
