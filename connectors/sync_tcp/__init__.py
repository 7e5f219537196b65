"""Synchronisation of Prolly trees over TCP (sds_core/prolly); no encryption.

`server.py` answers peers, `client.py` asks one; `stream.py` reads and writes frames
with limits of size and time.
"""
