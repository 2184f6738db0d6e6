"""SQPR's Algorithm 1 as printed: every new query is planned by the solver, jointly with its kin."""

from thalweg.placement.sqpr_milp.planner import SQPR_MILP, SqprMilp

__all__ = ["SQPR_MILP", "SqprMilp"]
