"""Files of Kafka records: one reader and one writer, and the way into a topic."""
