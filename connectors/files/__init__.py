"""Reads, writes and imports files of Kafka records; reads the channel table."""
