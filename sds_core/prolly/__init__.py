"""Prolly trees of Waku messages, and their synchronisation (75/WAKU2-SYNC).

`item.py`, `hashing.py`, `node.py`, `builder.py`, `tree.py` and `difference.py`
implement the tree. `document.py` is the server of the specification's protocol.
`batched/` is a protocol that needs fewer rounds and bytes.
"""
