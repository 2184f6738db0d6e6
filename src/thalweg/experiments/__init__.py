"""Experiments that re-run the sources' figures, each drawn beside what the source reports."""
