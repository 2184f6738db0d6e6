"""SODA's planner, as SQPR's authors built it for comparison (SQPR, section V-B)."""

from thalweg.placement.soda.planner import SODA, Soda

__all__ = ["SODA", "Soda"]
