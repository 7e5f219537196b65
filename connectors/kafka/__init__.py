"""Kafka: reading, writing, offsets, topics and dead letters (docs/records.md)."""

import logging

# kafka-python logs every failed attempt to connect; our error reports the result.
logging.getLogger("kafka").setLevel(logging.CRITICAL)
