"""A processor's side: its bucket ranges, their state and results."""
