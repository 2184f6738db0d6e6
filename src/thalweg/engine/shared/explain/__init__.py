"""EXPLAIN of what runs: physical operators, and the Spark job that a tick is."""

from thalweg.engine.shared.explain.job import describe_job
from thalweg.engine.shared.explain.physical import describe
from thalweg.engine.shared.explain.state import State
from thalweg.engine.shared.explain.tree import Branch

__all__ = ["Branch", "State", "describe", "describe_job"]
