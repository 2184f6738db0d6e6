"""SQPR: stream query planning with reuse, in a data centre."""
