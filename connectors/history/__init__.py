"""The history: incidents and per-minute figures, in Kafka topics and Parquet files."""
