"""Checks of what a job needs, for `doctor`; `run` logs findings of the cheap checks."""
