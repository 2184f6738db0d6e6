"""The heuristic planner that SQPR is compared with (section V-A)."""
