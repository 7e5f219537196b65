"""Kafka: records of the contract, reading, offsets, topics, an embedded broker."""

import logging

# kafka-python tells of every attempt to reach a broker that is away; what comes of it
# is told once, by the error that is raised at the end.
logging.getLogger("kafka").setLevel(logging.CRITICAL)
