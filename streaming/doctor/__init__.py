"""Checks of what a job needs.

`doctor` makes all checks. `run` makes only the quick checks, and logs their findings.
"""
