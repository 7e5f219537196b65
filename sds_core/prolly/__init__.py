"""Prolly trees of Waku messages, and their synchronisation (75/WAKU2-SYNC).

`item.py`, `hashing.py`, `node.py`, `builder.py`, `tree.py` and `difference.py` are the
tree. `document/` is the protocol of the specification, `batched/` one that needs fewer
rounds and bytes.
"""
