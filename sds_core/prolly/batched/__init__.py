"""A synchronisation with fewer rounds and bytes than the document's; docs/sync.md.

Both sides descend their trees at the same time: each message has the children of those
nodes of the sender that the receiver lacks, so a round trip descends two levels. The
first message has the children of all tails, from the root to the newest messages, so
differences among the newest messages are found in one or two round trips. A node is
identified by 6 bytes of a salted hash. The root's whole hash confirms the result.
"""
