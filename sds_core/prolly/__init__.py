"""Prolly trees of Waku messages, and their synchronisation (75/WAKU2-SYNC).

`item.py`, `hashing.py`, `node.py`, `builder.py`, `tree.py` and `difference.py`
implement the tree. `document.py` is the server of the protocol in the specification.
`batched/` is another protocol, which needs fewer rounds and bytes.
"""
