"""A synchronisation with fewer rounds and bytes than the document's; docs/sync.md.

Both sides descend their trees at the same time. If the receiver lacks a node, the
sender sends the node's children, so a round trip descends two levels. The first message
has the children of all tails, from the root to the newest messages. One or two round
trips therefore find differences among the newest messages. A node is identified by 6
bytes of a salted hash. The root's full hash confirms the result.
"""
