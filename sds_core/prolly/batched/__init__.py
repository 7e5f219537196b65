"""A synchronisation with fewer rounds and bytes than the document's; docs/sync.md.

Both sides go down their trees at once: each message has the children of the sender's
nodes that the receiver lacks, so a round trip descends two levels. The first one has
the children of all tails, from the root to the newest messages, so differences among
the newest messages are found in one or two round trips. A node is named by 6 bytes of
a salted hash. The root's whole hash confirms the result.
"""
