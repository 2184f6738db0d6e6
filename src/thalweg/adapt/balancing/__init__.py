"""When to move what, from whom to whom, by which way; which shape a node's join should have."""
