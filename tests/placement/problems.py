"""Small problems that several tests start from."""

from __future__ import annotations

import msgspec

from thalweg.placement.documents import read_problem
from thalweg.placement.problem import Problem

TWO_WAY = {
    "hosts": [
        {"name": "h0", "cpu": 10, "out_bps": 100, "in_bps": 100},
        {"name": "h1", "cpu": 10, "out_bps": 100, "in_bps": 100},
        {"name": "h2", "cpu": 10, "out_bps": 100, "in_bps": 100},
    ],
    "streams": [
        {"name": "a", "rate_bps": 40, "home": "h0"},
        {"name": "b", "rate_bps": 30, "home": "h1"},
        {"name": "ab", "rate_bps": 5},
    ],
    "operators": [{"name": "a⋈b", "inputs": ["a", "b"], "output": "ab", "cpu": 7}],
    "queries": [{"name": "q0", "wants": "ab"}, {"name": "q1", "wants": "ab"}],
}


def problem_of(document: object) -> Problem:
    return read_problem(msgspec.json.encode(document))


def two_way() -> Problem:
    """a at h0, b at h1, and two queries that want their join."""
    return problem_of(TWO_WAY)
