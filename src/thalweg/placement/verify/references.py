"""Numbers that stand for nothing."""

from __future__ import annotations

import numpy as np

from thalweg.placement.arrays import NONE, Ints
from thalweg.placement.deployment import Deployment
from thalweg.placement.problem import Problem
from thalweg.placement.verify.rules import Rule, Violation


def references(problem: Problem, deployment: Deployment) -> list[Violation]:
    hosts, streams = len(problem.hosts), len(problem.streams)
    operators, queries = len(problem.operators), len(problem.queries)
    tables: list[tuple[str, Ints, tuple[int, ...]]] = [
        ("runs", deployment.runs, (hosts, operators)),
        ("sends", deployment.sends, (hosts, hosts, streams)),
    ]
    if deployment.wants is not None:
        tables.append(("wants", deployment.wants, (hosts, streams)))
    found = [
        Violation(Rule.REFERENCE, f"{name}: {tuple(row.tolist())} is outside the problem")
        for name, rows, counts in tables
        for row in rows[((rows < 0) | (rows >= np.array(counts))).any(axis=1)]
    ]
    if len(deployment.serves) != queries:
        told = f"serves speaks of {len(deployment.serves)} queries of {queries}"
        found.append(Violation(Rule.REFERENCE, told))
    wrong = (deployment.serves < NONE) | (deployment.serves >= hosts)
    found += [
        Violation(Rule.REFERENCE, f"serves: query {q} at host {deployment.serves[q]}")
        for q in np.flatnonzero(wrong)
    ]
    return found
