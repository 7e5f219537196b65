"""A synchronisation with fewer rounds and bytes than 75/WAKU2-SYNC (docs/sync.md).

Both sides descend their trees at the same time. If one side lacks a node, the other
side sends the node's children, so a round trip descends two levels. The last node of a
level is the level's tail. The first message contains the children of each tail, from
the root down to the newest messages. Therefore, one or two round trips find differences
among the newest messages. A node is identified by 6 bytes of a salted hash. The root's
full hash confirms the result.
"""
