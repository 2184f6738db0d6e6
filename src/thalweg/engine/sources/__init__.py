"""Where tuples come from: files, Kafka, pushes, Python iterables, generators."""
