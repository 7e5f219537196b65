"""Fixtures shared by all rooms."""

from tests.support.kafka import kafka_broker, kafka_topic

__all__ = ["kafka_broker", "kafka_topic"]
