"""The lasting history: incidents and minutes of channels, in Kafka and in Parquet."""
