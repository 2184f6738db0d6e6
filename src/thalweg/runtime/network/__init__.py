"""Nodes that know each other: what is where, and statements that reach across nodes."""
