"""Kafka: reading, writing, offsets, topics and dead letters (docs/records.md)."""

import logging

# kafka-python logs every failed attempt to connect; our own error reports the result
# once.
logging.getLogger("kafka").setLevel(logging.CRITICAL)
