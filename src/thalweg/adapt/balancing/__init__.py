"""When to move what from whom to whom, and by which way; which shape a node's own join should have."""
