"""The embedded Kafka broker: its jars, configuration and processes."""
