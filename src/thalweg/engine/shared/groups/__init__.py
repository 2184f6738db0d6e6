"""Which queries are answered together, by whom, and when members move."""
