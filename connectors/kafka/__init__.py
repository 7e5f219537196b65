"""Kafka: reading, writing, offsets, topics and dead letters (docs/records.md)."""

import logging

# kafka-python logs every failed attempt to connect. The logs are not needed, because
# the errors of this package report the failure.
logging.getLogger("kafka").setLevel(logging.CRITICAL)
