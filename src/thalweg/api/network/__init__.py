"""The service of a node: what is elsewhere is asked for there."""
