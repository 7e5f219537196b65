"""Traces single messages: turns records into a `Trace`, which renderers print."""
