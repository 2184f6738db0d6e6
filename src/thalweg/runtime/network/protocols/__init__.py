"""Placement by nodes together, live: SAND's zones, COSMOS's coordinators, and what follows."""
