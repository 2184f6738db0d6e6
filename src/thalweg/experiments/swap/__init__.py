"""COSMOS 5.4: a join of three streams on three sites, simulated with their speeds."""
