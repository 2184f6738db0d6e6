"""Placement problems from CQL queries and measured rates."""
