"""What applications use: a channel in which every message arrives, or its sender knows.

`ReliableChannelCore` joins segmentation, SDS, encryption and rate limiting. It has no
sockets, threads or clock: what happens goes in with its time, what to do comes out.
"""
