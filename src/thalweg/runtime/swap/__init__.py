"""Joins across nodes whose order is left open, live (SwAP, COSMOS chapter 5)."""
