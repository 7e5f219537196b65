"""Decisions and figures of a mirror, without network, files or clock."""
