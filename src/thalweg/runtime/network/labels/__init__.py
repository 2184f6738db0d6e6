"""Tolerance classes between nodes: rows that are due, and for whom."""
