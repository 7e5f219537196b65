"""The history: incidents and minutes of channels, in Kafka topics and Parquet files."""
