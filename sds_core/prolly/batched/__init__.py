"""A protocol that needs fewer rounds and bytes than 75/WAKU2-SYNC (docs/sync.md).

The client and the server descend their trees at the same time. If the receiver lacks a
node of the sender, the sender's message lists the children of this node. Each message
thus descends one level, and a round trip descends two levels. The last node of a level
is the level's tail. For every level, the client's first message lists the children of
the level's tail, because the newest messages are below the tails. Therefore, one or two
round trips find differences among the newest messages. Both sides identify a node by 6
bytes of a salted hash. At the end, the client checks the result against the server's
complete root hash.
"""
