"""Fixtures shared by all rooms."""

from tests.support.kafka import kafka_broker, kafka_topic
from tests.support.streaming.session import spark

__all__ = ["kafka_broker", "kafka_topic", "spark"]
