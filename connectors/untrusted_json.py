"""Errors of JSON from untrusted senders."""

from __future__ import annotations

UNREADABLE = (ValueError, RecursionError)
"""Errors that untrusted JSON can raise; RecursionError if it is nested too deeply."""
