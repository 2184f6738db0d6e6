"""State that moves: a partitioned join, and the protocols that move its buckets between nodes."""
