"""Restraint: what needs more CPU than any one host has left is refused, though it would fit.

Admission query by query is myopic. Near saturation, a planner that can spread a query over several
hosts fills the last ends of their CPU with queries that make everything anew, and has nothing left
for the many that would reuse most of what they need. A planner that puts each query on one host
refuses the large ones first, whatever it knows; and so it overtakes the better one
(docs/experiments/sqpr-reuse.md). This rule asks the same of SQPR, and no forecast is in it.
"""

from __future__ import annotations

from thalweg.placement.ledger import SLACK, Ledger
from thalweg.placement.rows import Piece
from thalweg.placement.strategy import Refusal


def too_large(ledger: Ledger, query: int, piece: Piece) -> Refusal | None:
    """What would be larger than any host even if it were idle is not held to it."""
    capacity = ledger.problem.hosts.cpu
    need = sum(float(ledger.problem.operators.cpu[run.operator]) for run in piece.runs)
    left = float(ledger.cpu_left[ledger.alive].max(initial=0.0))
    largest = float(capacity[ledger.alive].max(initial=0.0))
    if need <= left + SLACK * largest or need > largest:
        return None
    host = int(ledger.cpu_left.argmax())
    detail = f"it needs {need:g} CPU, and no host has more than {left:g} left (restraint)"
    return Refusal(query, "cpu", host, detail)
