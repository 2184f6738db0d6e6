"""The heuristic planner of SQPR's evaluation (section V-A).

For each abstract plan of a query and each host, it tries to run the plan there, on that one host. A
stream that some host has is transferred rather than made again, the whole sub-query before its
parts. Of all candidates that fit, the best by the weighted objective is taken. Earlier decisions
stand, and a query's new operators never spread over several hosts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from thalweg.placement.abstract import AbstractPlans, abstract_plans
from thalweg.placement.arrays import NONE, Floats, Ints
from thalweg.placement.books import Books
from thalweg.placement.candidates import Candidate, Shortage
from thalweg.placement.deployment import Deployment
from thalweg.placement.listing import Plan, TooManyPlans, list_plans
from thalweg.placement.problem import Problem
from thalweg.placement.strategy import Decision, Options, Refusal, online_strategy
