"""Kafka: reading, writing, offsets, topics and dead letters (docs/records.md)."""

import logging

# kafka-python logs every failed attempt to connect; our errors report the failure.
logging.getLogger("kafka").setLevel(logging.CRITICAL)
