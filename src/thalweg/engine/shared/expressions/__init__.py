"""Expressions of the language as vectorised Polars expressions, exact to the last digit."""
