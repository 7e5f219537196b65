"""Decisions and figures of a mirror; no module here uses network, files or clock."""
