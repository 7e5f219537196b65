"""Synchronisation of Prolly trees over TCP (sds_core/prolly).

`server` answers peers, and `client` requests from a peer. `stream` reads and writes
frames with limits of size and time.
"""
