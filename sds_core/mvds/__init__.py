"""Minimum Viable Data Synchronization (2/MVDS): wire format and node."""
