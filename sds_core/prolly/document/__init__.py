"""The synchronisation of 75/WAKU2-SYNC: its messages, its client and its server."""
