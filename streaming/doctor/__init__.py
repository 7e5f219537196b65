"""Checks of everything that a job needs, each with a remedy.

`sds-monitor doctor` makes all of them. `sds-monitor run` makes those that are cheap
before Spark starts, and logs their findings.
"""
