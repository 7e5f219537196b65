"""Checks of everything that a job needs, each with a remedy.

`sds-monitor doctor` makes all checks. Before Spark starts, `sds-monitor run` makes the
cheap checks, and logs their findings.
"""
