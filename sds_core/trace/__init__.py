"""Traces single messages: records in, a `Trace` out, which renderers print."""
