"""Files of Kafka records: read, write, import into a topic; the channel table."""
