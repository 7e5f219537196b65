"""Checks of everything that a job needs, each with what to do.

`sds-monitor doctor` makes all of them. `sds-monitor run` makes those that are cheap
before Spark starts, and logs what they find.
"""
