"""Measurements to which `plan size` fits its cost model.

docs/performance.md and docs/scaling.md show the measurements.
"""
