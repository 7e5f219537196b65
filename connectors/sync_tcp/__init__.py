"""Synchronisation of Prolly trees over TCP (sds_core/prolly).

`server` answers peers, and `client` sends requests. `stream` limits the size and time
of frames.
"""
