"""Distributed join plans that leave the order open (SwAP, COSMOS chapter 5)."""
