"""Measurements that `plan size` is fitted to, as JSON.

``performance.json`` has the figures of docs/performance.md. ``scaling.json`` has the
table of docs/scaling.md, and what `benchmarks.state` and `benchmarks.history` print.
"""
