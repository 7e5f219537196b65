"""A synchronisation with fewer rounds and bytes than 75/WAKU2-SYNC (docs/sync.md).

Both sides descend their trees at the same time. If one side lacks a node, the other
side sends the node's children, so a round trip descends two levels. The first message
contains the children of the last node of each level (its tail), from the root down to
the newest messages. Therefore, one or two round trips find differences among the newest
messages. A node is identified by 6 bytes of a salted hash. The root's full hash
confirms the result.
"""
