"""Synchronisation of Prolly trees over TCP (sds_core/prolly).

`server` answers peers, `client` asks one; `stream` reads and writes frames with limits
of size and time.
"""
