"""Into the engine: batches are typed, judged, made durable and listed."""
