"""Traces single messages: builds a `Trace` from records, and formats it."""
