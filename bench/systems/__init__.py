"""The systems that benches compare: each runs the same queries over the same events."""
