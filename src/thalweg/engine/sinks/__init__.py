"""Where results go: terminal, JSON lines, CSV, Parquet, Kafka, callbacks."""
