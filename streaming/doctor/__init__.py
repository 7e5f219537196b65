"""Checks whether a job has what it needs, such as memory and rights in Kafka.

The command `doctor` makes all checks. The command `run` makes only the quick checks,
and logs their findings.
"""
