"""The mixed integer programme of SQPR (section III): model in two forms, and the solver.

`whole` plans all of a small problem at once; `sqpr_milp` uses the same model query by query.
"""
