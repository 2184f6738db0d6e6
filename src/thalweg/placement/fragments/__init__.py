"""Fragments of queries (COSMOS 6.2.1): how plans are cut, and where the pieces start."""
