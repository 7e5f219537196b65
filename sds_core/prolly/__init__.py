"""Prolly trees of Waku messages, and their synchronisation (75/WAKU2-SYNC).

`item.py`, `hashing.py`, `node.py`, `builder.py`, `tree.py` and `difference.py`
implement the tree. `document.py` implements the server of the protocol that
75/WAKU2-SYNC specifies. `batched/` implements the client and the server of another
protocol, which needs fewer rounds and bytes.
"""
