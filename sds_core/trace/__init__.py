"""Traces single messages: converts records to a `Trace` for renderers."""
