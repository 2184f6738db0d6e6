"""The mixed integer programme of SQPR (section III): model, solver, and its two uses.

`whole` plans all of a small problem at once, `room` moves a few results to make room for a query.
"""
